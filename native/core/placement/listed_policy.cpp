#include "placement/listed_policy.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {
bool ListedPolicy::came_before(const UmBlock& block, const UmBlock& other) const {
  return block.order.launch < other.order.launch;
}

inline void ListedPolicy::append(UmBlock& block, BlockPlace place) {
  block.order.place = refined(block, place);
  switch (block.order.place) {
    case BlockPlace::kEvictable:
      evictable_.add(block);
      return;
    case BlockPlace::kEvictableClean:
      evictable_clean_.add(block);
      return;
    case BlockPlace::kCoolingDown:
      cooling_down_.append(block);
      return;
    case BlockPlace::kExpected:
      expected_.add(block);
      return;
    case BlockPlace::kExpectedClean:
      expected_clean_.add(block);
      return;
    case BlockPlace::kDead:
    case BlockPlace::kPinned:
      return;  // those are the base's
  }
}

inline void ListedPolicy::take_from_list(UmBlock& block) {
  switch (block.order.place) {
    case BlockPlace::kEvictable:
      evictable_.remove(block);
      return;
    case BlockPlace::kEvictableClean:
      evictable_clean_.remove(block);
      return;
    case BlockPlace::kCoolingDown:
      cooling_down_.remove(block);
      return;
    case BlockPlace::kExpected:
    case BlockPlace::kExpectedClean:
      (block.order.place == BlockPlace::kExpected ? expected_ : expected_clean_).remove(block);
      clear_prefetched(block);
      return;
    case BlockPlace::kDead:
    case BlockPlace::kPinned:
      return;
  }
}

void ListedPolicy::insert(UmBlock& block) { append(block, BlockPlace::kEvictable); }

void ListedPolicy::remove(UmBlock& block) { take_from_list(block); }

void ListedPolicy::put(UmBlock& block, BlockPlace place, LaunchIndex launch) {
  if (block.order.place == BlockPlace::kDead) {
    take_out(block);
  } else {
    take_from_list(block);
  }
  block.order.launch = launch;
  append(block, place);
}

void ListedPolicy::move(UmBlock& block, BlockPlace place) {
  const bool prefetched = block.order.prefetched;
  put(block, place, block.order.launch);
  if (prefetched) {
    restore_prefetched(block);
  }
}

void ListedPolicy::expectation_ended(UmBlock& block) {
  if (is_expected(block)) {
    put(block, BlockPlace::kEvictable, block.order.launch);
  }
}

void ListedPolicy::apply_expectation(UmBlock& block, LaunchIndex by) {
  if (!is_expected(block)) {
    block.order.afterwards = 0;
    put(block, BlockPlace::kExpected, by);
  } else if (by < block.order.launch) {
    block.order.afterwards = block.order.launch;
    put(block, BlockPlace::kExpected, by);
  } else if (by > block.order.launch && block.order.afterwards == 0) {
    block.order.afterwards = by;
  }
}

// What those launches did not use is expected by the next that needs it, or by none.
void ListedPolicy::launch_passed() {
  const LaunchIndex launch = now().launch;
  for (ExpectedBlocks* const blocks : {&expected_, &expected_clean_}) {
    while (UmBlock* block = blocks->first_until(launch)) {
      const LaunchIndex afterwards = std::exchange(block->order.afterwards, 0);
      const bool again = afterwards > launch;
      put(*block, again ? BlockPlace::kExpected : BlockPlace::kEvictable,
          again ? afterwards : block->order.launch);
    }
  }
}

UmBlock* ListedPolicy::first() {
  return evictable_.find(1, [](const UmBlock&) { return true; });
}

// Not what ends by itself: it would be copied for nothing. Of what no launch is expected to use
// only what is known to be needed later: the rest may be needed all the same, and would come back
// behind all of this.
UmBlock* ListedPolicy::needed_after(LaunchIndex launch, LaunchIndex known_until) {
  const auto lives_on = [&](const UmBlock& block) {
    return block.uses.next_use != Use::kDies || block.uses.next <= now().launch;
  };
  UmBlock* found = expected_.find_beyond(launch, parameters_.late_scan, lives_on);
  found = found != nullptr ? found
                           : expected_clean_.find_beyond(launch, parameters_.late_scan, lives_on);
  if (found != nullptr) {
    return found;
  }
  const auto late_enough = [&](const UmBlock& block) {
    return block.uses.next_use != Use::kDies && block.uses.next > launch &&
           block.uses.next <= known_until;
  };
  found = evictable_clean_.find(parameters_.late_scan, late_enough);
  found = found != nullptr ? found : evictable_.find(parameters_.late_scan, late_enough);
  return found != nullptr
             ? found
             : cooling_down_.find(parameters_.late_scan,
                                  late_enough);  // its space is in time for a program that waits
}

void ListedPolicy::for_each_expected_after(LaunchIndex launch,
                                           const std::function<void(UmBlock&)>& visit) {
  settle();
  expected_.for_each_beyond(launch, parameters_.expected_scan, visit);
}

}  // namespace deepum::core
