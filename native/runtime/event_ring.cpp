#include "event_ring.hpp"

#include <cstring>

namespace deepum::runtime {
namespace {

constexpr std::uint64_t kBytes = DEEPUM_EVENT_RING_BYTES;
static_assert((kBytes & (kBytes - 1)) == 0);
// For room while the daemon's position changes: it may be nonsense.
constexpr int kMostLooks = 1000;

std::uint64_t first_word(const deepum_event_header& header) noexcept {
  std::uint64_t word;
  std::memcpy(&word, &header, sizeof word);
  return word;
}

}  // namespace

EventRing::Place EventRing::reserve(std::uint32_t words) noexcept {
  const std::uint64_t bytes = std::uint64_t{words} * 8;
  // Read before what is reserved, which then lies behind it: the other way round another thread's
  // records, reserved and taken in between, would look as if there were no room.
  std::uint64_t taken = consumed();
  std::uint64_t position = reserved();
  for (int looks = 1;;) {
    const std::uint64_t tail = kBytes - (position & (kBytes - 1));
    const std::uint64_t pad = tail < bytes ? tail : 0;
    // The daemon's position is believed no further than that it cannot lead us outside of the ring.
    const std::uint64_t used = position - taken;
    if (used > kBytes || kBytes - used < pad + bytes) {
      const std::uint64_t now = consumed();
      if (now == taken || ++looks > kMostLooks) {
        return {};
      }
      taken = now;
      position = reserved();
      continue;
    }
    if (!__atomic_compare_exchange_n(&memory_.control->event_reserved, &position,
                                     position + pad + bytes, true, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    if (pad != 0) {
      deepum_event_header filler{};
      filler.words = static_cast<std::uint16_t>(pad / 8);
      filler.kind = DEEPUM_EVENT_PAD;
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(memory_.events + (position & (kBytes - 1))),
                       first_word(filler), __ATOMIC_RELEASE);
    }
    return {position + pad, (position + pad) / 8 + 1};
  }
}

bool EventRing::publish(const Place& place, deepum_event_header* record) noexcept {
  record->sequence = place.sequence;
  std::uint8_t* to = memory_.events + (place.position & (kBytes - 1));
  std::memcpy(to + 8, reinterpret_cast<const std::uint8_t*>(record) + 8,
              std::size_t{record->words} * 8 - 8);
  // Sequentially consistent with the daemon's "daemon_sleeps = 1; is there a record?": one of the
  // two sees the other.
  __atomic_exchange_n(reinterpret_cast<std::uint64_t*>(to), first_word(*record), __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&memory_.control->daemon_sleeps, __ATOMIC_RELAXED) == 0) {
    [[likely]] return false;
  }
  return __atomic_exchange_n(&memory_.control->daemon_sleeps, 0u, __ATOMIC_ACQ_REL) != 0;
}

std::uint64_t EventRing::free_bytes() const noexcept {
  const std::uint64_t used = reserved() - consumed();
  return used > kBytes ? 0 : kBytes - used;
}

}  // namespace deepum::runtime
