#include "placement/recency_policy.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {

RecencyPolicy::RecencyPolicy(bool by_migration, std::size_t prefetch_degree,
                             const deepum_order_parameters& parameters, View view)
    : ListedPolicy(by_migration, false, parameters, view), by_migration_(by_migration) {
  expected_.span(prefetch_degree);
}

bool RecencyPolicy::came_before(const UmBlock& block, const UmBlock& other) const {
  return by_migration_ ? block.residency.migrated < other.residency.migrated
                       : ListedPolicy::came_before(block, other);
}

void RecencyPolicy::apply_use(UmBlock& block) {
  const LaunchIndex launch = now().launch;
  note_use(block);
  if (block.order.place == BlockPlace::kExpected && block.order.launch > launch) {
    clear_prefetched(block);  // a use that was not predicted, before the one that is
  } else if (block.order.afterwards > launch) {
    put(block, BlockPlace::kExpected, std::exchange(block.order.afterwards, 0));
  } else if (is_evictable(block) && by_migration_) {
    block.order.launch = launch;  // its place is that of its migration
  } else {
    put(block, BlockPlace::kEvictable, launch);
  }
}

void RecencyPolicy::clean_changed(UmBlock& block) {
  if (is_evictable(block) && refined(block, BlockPlace::kEvictable) != block.order.place) {
    move(block, BlockPlace::kEvictable);
  }
}

void RecencyPolicy::before_renewal(UmBlock& block) {
  if (is_evictable(block) && by_migration_) {
    remove(block);
  }
}

void RecencyPolicy::renewed(UmBlock& block) {
  if (is_evictable(block) && by_migration_) {
    insert(block);
  }
}

void RecencyPolicy::prediction_failed() {
  while (UmBlock* block = expected_.any()) {
    block->order.afterwards = 0;
    put(*block, BlockPlace::kEvictable, block->order.launch);
  }
}

// What no launch is expected to use goes first; after that what launches not placed yet expect, the
// farthest first, unless it was used so lately that its space would come late.
Victim RecencyPolicy::choose(const VictimQuery& query) {
  if (UmBlock* const block =
          first_evictable([&](const UmBlock& each) { return free_to_leave(each, query); });
      block != nullptr) {
    return {block};
  }
  const auto cooled_down = [&](const UmBlock& block) {
    return free_to_leave(block, query) && !block.order.prefetched &&
           residency().migrations() - block.order.migrations_at_use >= parameters_.cool_down_blocks;
  };
  if (UmBlock* const block = expected_.find_beyond(std::max(query.for_launch, query.promised_until),
                                                   parameters_.expected_scan, cooled_down);
      block != nullptr || !query.last_resort) {
    return {block};
  }
  UmBlock* const block = expected_.find_beyond(
      0, parameters_.victim_scan, [&](const UmBlock& each) { return free_to_leave(each, query); });
  return {block, block != nullptr};
}

}  // namespace deepum::core
