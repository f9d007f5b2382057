// Observed faults as they are told: summed up by UM block, neighbours of the same access as one
// run. Logic only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "records.h"

namespace deepum {

// A UM block of a device that faulted.
struct FaultPlace {
  std::uint32_t device;
  std::uint64_t slot, block;
  std::uint64_t faults;
  std::uint8_t access;  // enum deepum_fault_access, or'ed
  auto where() const noexcept { return std::tuple(device, slot, block); }
};

// Calls back with a FAULT event for each run, in the order of devices, slots and blocks; its
// sequence is the ring's to set.
template <typename Each>
void tell_faults(std::vector<FaultPlace>& places, Each each) {
  std::ranges::sort(places, {}, &FaultPlace::where);
  std::size_t blocks = 0;
  for (const FaultPlace& place : places) {
    if (blocks != 0 && places[blocks - 1].where() == place.where()) {
      places[blocks - 1].faults += place.faults;
      places[blocks - 1].access |= place.access;
    } else {
      places[blocks++] = place;
    }
  }
  constexpr std::uint64_t kMostCount = (1ull << DEEPUM_RANGE_COUNT_BITS) - 1;
  for (std::size_t i = 0; i < blocks;) {
    const FaultPlace& first = places[i];
    std::uint64_t count = 0, sum = 0;
    for (; i < blocks && count < kMostCount; ++i, ++count) {
      const FaultPlace& next = places[i];
      if (std::tuple(next.device, next.slot, next.block, next.access) !=
          std::tuple(first.device, first.slot, first.block + count, first.access)) {
        break;
      }
      sum += next.faults;
    }
    deepum_fault_event event{};
    event.header.words = sizeof event / 8;
    event.header.kind = DEEPUM_EVENT_FAULT;
    event.header.flags = first.access;
    event.header.device = first.device;
    event.range =
        first.slot << DEEPUM_RANGE_SLOT_SHIFT | first.block << DEEPUM_RANGE_FIRST_SHIFT | count;
    event.faults = sum;
    each(event);
  }
}

}  // namespace deepum
