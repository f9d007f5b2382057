#include "placement/driver_eviction.hpp"

namespace deepum::core {

bool DriverEviction::make_room(DeviceMemory& device, const Request& request,
                               const UmBlock*& outgoing) {
  if (!may_take_room(device, request.urgency)) {
    return false;
  }
  if (device.residency.free() > 0) {
    return true;
  }
  // What the placement itself needs is prefetched again where it is about to go, which costs
  // nothing and saves it.
  const std::uint64_t latest = device.residency.migrations();
  for (;;) {
    UmBlock* const first = device.driver_order.find(1, [](const UmBlock&) { return true; });
    if (first == nullptr || first->residency.migrated > latest) {
      return false;
    }
    ++statistics_.operations;
    if (first->moves.claim != claim()) {
      device.residency.end_filling();
      device.drop(*first);
      if (first->content.populated) {
        first->moves.evicted_for = request.launch;
        departures_.note_streams(*first);
        outgoing = first;
      }
      return true;
    }
    device.renew(*first);
    commands_.move(DEEPUM_COMMAND_PREFETCH, *first, {0, 0, first->moves.out});
  }
}

}  // namespace deepum::core
