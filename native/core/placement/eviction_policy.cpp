#include "placement/eviction_policy.hpp"

#include <utility>

#include "placement/next_use_policy.hpp"
#include "placement/recency_policy.hpp"

namespace deepum::core {

void EvictionPolicy::arrived(UmBlock& block) {
  block.order.afterwards = 0;
  enter(block);
}

void EvictionPolicy::enter(UmBlock& block) {
  if (block.order.pinned) {
    block.order.place = BlockPlace::kPinned;
    pinned_.append(block);
  } else {
    block.order.place = BlockPlace::kEvictable;
    insert(block);
  }
}

void EvictionPolicy::departed(UmBlock& block) {
  take_out(block);
  block.order.place = BlockPlace::kEvictable;
}

void EvictionPolicy::take_out(UmBlock& block) {
  switch (block.order.place) {
    case BlockPlace::kDead:
      dead_.remove(block);
      return;
    case BlockPlace::kPinned:
      pinned_.remove(block);
      return;
    default:
      remove(block);
  }
}

void EvictionPolicy::pin(UmBlock& block, bool pinned) {
  if (std::exchange(block.order.pinned, pinned) == pinned || !block.residency.resident ||
      block.order.place == BlockPlace::kDead) {
    return;
  }
  clear_prefetched(block);
  take_out(block);
  enter(block);
}

void EvictionPolicy::content_died(UmBlock& block, bool drops) {
  pin(block, false);
  block.order.afterwards = 0;  // the launch that was expected to use it meant what died
  if (!drops) {
    expectation_ended(block);
    return;
  }
  take_out(block);
  block.order.place = BlockPlace::kDead;
  dead_.append(block);
}

void EvictionPolicy::keep_dead() {
  while (UmBlock* const block = dead_.head()) {
    EvictionPolicy::apply_prospect(*block);
  }
}

void EvictionPolicy::apply_prospect(UmBlock& block) {
  if (block.order.place == BlockPlace::kDead) {
    dead_.remove(block);
    enter(block);
  }
}

void EvictionPolicy::mark_prefetched(UmBlock& block) {
  if (!is_pinned(block)) {
    restore_prefetched(block);
    note_use(block);
  }
}

Victim EvictionPolicy::victim(const VictimQuery& query) {
  settle();
  if (query.dead_may_leave) {
    for (UmBlock* block = dead_.head(); block != nullptr; block = block->order.after) {
      if (free_to_leave(*block, query)) {
        return {block};
      }
    }
  }
  const Victim found = choose(query);
  if (found.block != nullptr || !query.last_resort) {
    return found;
  }
  for (UmBlock* block = pinned_.head(); block != nullptr; block = block->order.after) {
    if (free_to_leave(*block, query)) {
      return {block};
    }
  }
  return found;
}

std::unique_ptr<EvictionPolicy> make_eviction_policy(const deepum_core_settings& settings,
                                                     EvictionPolicy::View view) {
  if (settings.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE &&
      settings.policy == DEEPUM_POLICY_CORRELATION) {
    return std::make_unique<NextUsePolicy>(settings.launch_queue, settings.parameters.order, view);
  }
  const bool by_migration = settings.eviction_order == DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED;
  return std::make_unique<RecencyPolicy>(by_migration, settings.prefetch_degree,
                                         settings.parameters.order, view);
}

}  // namespace deepum::core
