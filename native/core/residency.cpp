#include "residency.hpp"

#include <utility>

namespace deepum::core {
namespace {

constexpr std::uint64_t kMistake = 4;  // blocks by which one narrows the window
// How long a used block rests at least, so that its space comes in time: launches and blocks brought since, both,
constexpr std::uint64_t kRestLaunches = 2;
constexpr std::uint64_t kRestBlocks = 32;
// and one of these besides: launches, or this part of the device in blocks brought.
constexpr std::uint64_t kLongRest = 32;
constexpr std::uint64_t kRestShare = 16;
constexpr std::uint64_t kDying = 16;  // times: what ends by itself is not needed again, so it goes as if it were needed so much later

}  // namespace

std::uint32_t Names::intern(std::uint64_t name) {
  const auto [place, fresh] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) {
    names_.push_back({name, -1});
  }
  return place->second;
}

void DeviceMemory::take_out(UmBlock& block) {
  switch (block.place) {
    case BlockPlace::kKept:
      kept.remove(block);
      return;
    case BlockPlace::kCopied:
      copied.remove(block);
      return;
    case BlockPlace::kResting:
      resting.remove(block);
      return;
    case BlockPlace::kExpected:
    case BlockPlace::kExpectedCopied:
      (block.place == BlockPlace::kExpected ? expected : expected_copied).remove(block);
      settle_fetched(block);
      return;
    case BlockPlace::kDead:
      dead.remove(block);
      return;
  }
}

void DeviceMemory::settle_fetched(UmBlock& block) {
  fetched_blocks -= block.fetched ? 1 : 0;
  block.fetched = false;
}

void DeviceMemory::put(UmBlock& block, BlockPlace place, std::uint64_t position) {
  take_out(block);
  place = place == BlockPlace::kKept && block.copied                      ? BlockPlace::kCopied
          : place == BlockPlace::kExpected && block.copied && by_next_use ? BlockPlace::kExpectedCopied
                                                                          : place;
  block.place = place;
  block.use_position = position;
  switch (place) {
    case BlockPlace::kKept:
      kept.add(block);
      return;
    case BlockPlace::kCopied:
      copied.add(block);
      return;
    case BlockPlace::kResting:
      resting.append(block);
      return;
    case BlockPlace::kExpected:
      expected.add(block);
      return;
    case BlockPlace::kExpectedCopied:
      expected_copied.add(block);
      return;
    case BlockPlace::kDead:
      dead.append(block);
      return;
  }
}

void DeviceMemory::add(UmBlock& block) {
  block.resident = true;
  block.place = block.copied ? BlockPlace::kCopied : BlockPlace::kKept;
  block.migrated = ++migrations;
  block.again = 0;
  (block.copied ? copied : kept).add(block);
  if (driver_evicts) {
    arrivals.add(block);
  }
}

void DeviceMemory::renew(UmBlock& block) {
  const bool in_order = block.is_kept() && kept.by_migration();
  if (in_order) {
    take_out(block);
  }
  arrivals.remove(block);
  block.migrated = ++migrations;
  arrivals.add(block);
  if (in_order) {
    (block.place == BlockPlace::kCopied ? copied : kept).add(block);
  }
}

void DeviceMemory::drop(UmBlock& block) {
  take_out(block);
  if (driver_evicts) {
    arrivals.remove(block);
  }
  copied_blocks -= block.copied ? 1 : 0;
  block.copied = false;
  --used_blocks;
  block.resident = false;
  block.place = BlockPlace::kKept;
}

void DeviceMemory::use(UmBlock& block, std::uint64_t position) {
  block.used_after = migrations;
  if (by_next_use) {
    const std::uint64_t foreseen = block.is_expected() && block.use_position > position ? block.use_position : block.again;
    put(block, BlockPlace::kResting, position);
    block.again = foreseen > position ? foreseen : 0;
    return;
  }
  if (block.place == BlockPlace::kExpected && block.use_position > position) {
    settle_fetched(block);  // a use that nobody foresaw, before the one that is expected
  } else if (block.again > position) {
    put(block, BlockPlace::kExpected, std::exchange(block.again, 0));
  } else if (block.is_kept() && kept.by_migration()) {
    block.use_position = position;  // uses aside
  } else {
    put(block, BlockPlace::kKept, position);
  }
}

void DeviceMemory::spare(UmBlock& block, std::uint64_t position) {
  if (by_next_use) {
    block.used_after = migrations;
    put(block, BlockPlace::kResting, position);
  } else if (block.place == BlockPlace::kDead) {
    put(block, BlockPlace::kKept, block.use_position);
  }
}

void DeviceMemory::expect(UmBlock& block, std::uint64_t position) {
  if (block.place == BlockPlace::kResting) {
    block.again = block.again <= latest ? position : std::min(block.again, position);
  } else if (!block.is_expected()) {
    block.again = 0;
    put(block, BlockPlace::kExpected, position);
  } else if (position < block.use_position) {
    block.again = block.use_position;
    put(block, BlockPlace::kExpected, position);
  } else if (position > block.use_position && block.again == 0) {
    block.again = position;
  }
}

void DeviceMemory::expect_none_until(std::uint64_t position) {
  latest = position;
  for (ExpectedBlocks* const blocks : {&expected, &expected_copied}) {
    while (UmBlock* block = blocks->first_until(position)) {
      const std::uint64_t again = std::exchange(block->again, 0);
      put(*block, again > position ? BlockPlace::kExpected : BlockPlace::kKept, again > position ? again : block->use_position);
    }
  }
}

void DeviceMemory::wake(std::uint64_t position, std::uint64_t iteration) {
  const std::uint64_t share = capacity_blocks / kRestShare;
  const std::uint64_t least_launches = std::min(kRestLaunches, iteration / kRestShare), least_blocks = std::min(kRestBlocks, share);
  const auto rested = [&](const UmBlock& block) {
    const std::uint64_t launches = position - block.use_position, brought = migrations - block.used_after;
    return launches > launch_queue ||  // it has run
           (launches >= least_launches && brought >= least_blocks && (launches >= kLongRest || brought >= share));
  };
  for (UmBlock* block = resting.head(); block != nullptr && rested(*block); block = resting.head()) {
    // By the chain, where it may be believed.
    const std::uint64_t predicted = block->again > position && !overdue(*block) ? block->again : 0;
    std::uint64_t learned = block->awaited > position ? block->awaited : 0;
    if (learned != 0 && block->next_use == Use::kDies) {
      learned = block->used + kDying * (learned - block->used);
    }
    // While most next uses are unknown (at first, or where nothing repeats) those that were learned say little.
    ++woken;
    foreseen += predicted != 0 || learned != 0 ? 1 : 0;
    if (woken >= 2 * capacity_blocks) {
      woken /= 2;
      foreseen /= 2;
    }
    learned = foreseen * 2 >= woken ? learned : 0;
    const std::uint64_t next = predicted == 0 || learned == 0 ? predicted + learned : std::min(predicted, learned);
    const std::uint64_t last = std::max(predicted, learned);
    block->again = last > next ? last : 0;
    put(*block, next != 0 ? BlockPlace::kExpected : BlockPlace::kKept, next != 0 ? next : block->use_position);
  }
}

void DeviceMemory::expect_nothing() {
  if (by_next_use) {
    return;  // what was learned of next uses stands
  }
  while (UmBlock* block = expected.any()) {
    block->again = 0;
    put(*block, BlockPlace::kKept, block->use_position);
  }
}

void DeviceMemory::copy(UmBlock& block) {
  copied_blocks += block.copied ? 0 : 1;
  block.copied = true;
  if (block.resident && (block.place == BlockPlace::kKept || (by_next_use && block.place == BlockPlace::kExpected))) {
    move(block, block.place);
  }
}

void DeviceMemory::uncopy(UmBlock& block) {
  copied_blocks -= block.copied ? 1 : 0;
  block.copied = block.copied_ahead = false;
  if (block.resident && (block.place == BlockPlace::kCopied || block.place == BlockPlace::kExpectedCopied)) {
    move(block, block.place == BlockPlace::kCopied ? BlockPlace::kKept : BlockPlace::kExpected);
  }
}

void DeviceMemory::move(UmBlock& block, BlockPlace place) {
  const bool fetched = block.fetched;
  put(block, place, block.use_position);
  fetched_blocks += fetched ? 1 : 0;
  block.fetched = fetched;
}

void DeviceMemory::count_evictions(std::uint64_t position, std::uint64_t iteration) {
  if (position - counted_from >= iteration) {
    evicted_lately = std::exchange(evictions, 0);
    counted_from = position;
  }
  evicted_lately = std::max(evicted_lately, evictions);
}

void DeviceMemory::widen_window() {
  withheld_blocks -= std::min<std::uint64_t>(withheld_blocks, window_full ? 1 : 0);
  window_full = false;
}

void DeviceMemory::narrow_window() {
  ++mistakes;
  const std::uint64_t wide = capacity_blocks - std::min(capacity_blocks, ahead_blocks());
  withheld_blocks = std::max(withheld_blocks, wide) + kMistake;
}

// Where the capacity fell, or a discard was undone, moves have freed more than there is: the space that was free first is the one that is
// not there, or what comes would wait for moves that are long done, and find no room.
void DeviceMemory::forget_lost_space() {
  while (freed.size() + emptied.size() > free_blocks()) {
    (emptied.empty() || frees_first() ? freed : emptied).pop_front();
  }
}

Space DeviceMemory::take_space(bool fetches) {
  forget_lost_space();
  ++used_blocks;
  // Space that was never used, or was freed with its allocation, goes first.
  const std::uint64_t unclaimed = capacity_blocks >= used_blocks ? capacity_blocks - used_blocks : 0;
  if (unclaimed >= freed.size() + emptied.size()) {
    return {};
  }
  // What is fetched takes the space that is free first, so that it does not hold up what comes behind it. What is only populated has the
  // time to wait for what died last.
  std::deque<Space>& from = emptied.empty() || (fetches && by_next_use && frees_first()) ? freed : emptied;
  const Space space = from.front();
  from.pop_front();
  return space;
}

}  // namespace deepum::core
