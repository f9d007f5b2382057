#include "placement/eviction_policy.hpp"

#include "placement/next_use_policy.hpp"
#include "placement/recency_policy.hpp"

namespace deepum::core {

void EvictionPolicy::arrived(UmBlock& block) {
  block.order.place = BlockPlace::kEvictable;
  block.order.afterwards = 0;
  insert(block);
}

void EvictionPolicy::departed(UmBlock& block) {
  take_out(block);
  block.order.place = BlockPlace::kEvictable;
}

void EvictionPolicy::take_out(UmBlock& block) {
  block.order.place == BlockPlace::kDead ? dead_.remove(block) : remove(block);
}

void EvictionPolicy::content_died(UmBlock& block, bool drops) {
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
    EvictionPolicy::will_be_used(*block);
  }
}

void EvictionPolicy::will_be_used(UmBlock& block) {
  if (block.order.place == BlockPlace::kDead) {
    dead_.remove(block);
    block.order.place = BlockPlace::kEvictable;
    insert(block);
  }
}

void EvictionPolicy::mark_prefetched(UmBlock& block) {
  restore_prefetched(block);
  note_use(block);
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
  return choose(query);
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
