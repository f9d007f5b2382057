// Without pre-eviction (DeepUM, section 6: prefetching alone) nothing is evicted by command: where memory is full, the driver evicts one
// block for each that is fetched, in the order of its own list, where a prefetch of what is there counts as a migration. That block is
// known, so the prefetch waits for its last use, as an eviction would; what is known of launches to come saves none.
#include "engine.hpp"

namespace deepum::core {

bool Engine::yield_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual, const UmBlock*& outgoing) {
  if (!may_take_room(device, actual)) {
    return false;
  }
  if (device.free_blocks() > 0) {
    return true;
  }
  // What the placement itself needs is prefetched again where it is about to go, which costs nothing and saves it.
  const std::uint64_t latest = device.migrations;
  for (;;) {
    UmBlock* first = device.arrivals.find(1, [](const UmBlock&) { return true; });
    if (first == nullptr || first->migrated > latest) {
      return false;
    }
    ++statistics_.operations;
    if (first->claim != claim_) {
      end_filling(device);
      device.drop(*first);
      if (first->populated) {
        first->evicted_for = position;
        note_streams(device, *first);
        outgoing = first;
      }
      return true;
    }
    device.renew(*first);
    command(DEEPUM_COMMAND_PREFETCH, ordinal, *first, 0, 0, first->moved_out);
  }
}

}  // namespace deepum::core
