// Which block leaves a device when room is needed. There is one object a device. A policy hears
// what happens to the resident blocks and answers one question, `choose`; each call costs O(1) or a
// logarithm.
//
// A new order is one class: `insert`, `remove` and `choose` suffice. EvictionPolicyFactory says
// which one a core uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "clock.hpp"
#include "core.h"
#include "memory/block_list.hpp"
#include "memory/residency.hpp"

namespace deepum::core {

struct VictimQuery {
  LaunchIndex for_launch;      // that wants the space
  LaunchIndex promised_until;  // launches up to there count on what is resident
  std::uint64_t claim;         // blocks with this claim are the placement's own
  bool last_resort;  // a launch at hand has nowhere else to go, so that it takes what others expect
  bool dead_may_leave;  // else new content will want the space of the dead
};

struct Victim {
  UmBlock* block = nullptr;  // nullptr: none
  bool mistake = false;      // an earlier launch needs it, so that too much was fetched ahead
};

class EvictionPolicy {
 public:
  // What a policy may read, and the count of blocks that it looked at.
  struct View {
    const Clock& now;
    const ResidencyBelief& residency;
    std::uint64_t& operations;
  };

  explicit EvictionPolicy(View view) : view_(view) {}
  virtual ~EvictionPolicy() = default;
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  // A block became resident: it is the last to leave. `residency.migrated` rises from block to
  // block.
  void arrived(UmBlock& block);
  // It is not resident any longer.
  void departed(UmBlock& block);
  // Its content is not needed. `drops`: dead blocks leave first; they are victims like others
  // otherwise.
  void content_died(UmBlock& block, bool drops);
  // Dead blocks are victims like all others from now on.
  void keep_dead();
  // The program prefers it on the device, or does not any longer: a pinned block is not subject to
  // the order, and leaves where nothing else is left, until its content dies.
  void pin(UmBlock& block, bool pinned);
  // It was fetched for a launch to come, which is expected to use it.
  void mark_prefetched(UmBlock& block);
  // The launch at hand uses it.
  void used(UmBlock& block) {
    if (!is_pinned(block)) {
      apply_use(block);
    }
  }
  // The program brought it, or handed it out: it will use it.
  void will_be_used(UmBlock& block) {
    if (!is_pinned(block)) {
      apply_prospect(block);
    }
  }
  // Launch number `by` is expected to use it.
  void expected(UmBlock& block, LaunchIndex by) {
    if (!is_pinned(block)) {
      apply_expectation(block, by);
    }
  }
  // The same for a launch that is not placed yet, and may be iterations away.
  void expected_one_day(UmBlock& block, LaunchIndex by) {
    if (!is_pinned(block)) {
      apply_distant_expectation(block, by);
    }
  }
  // The block that leaves next.
  Victim victim(const VictimQuery& query);

  std::uint64_t dead_blocks() const { return dead_.size(); }
  UmBlock* first_dead() const { return dead_.head(); }             // to die; nullptr: none is
  std::uint64_t prefetched_blocks() const { return prefetched_; }  // and not used since
  // Calls it for dead blocks, the first to die first, while it returns true. It may make the block
  // leave.
  template <typename Visit>
  void for_each_dead(Visit visit) {
    for (UmBlock* block = dead_.head(); block != nullptr;) {
      UmBlock* const next = block->order.after;
      if (!visit(*block)) {
        return;
      }
      block = next;
    }
  }

  // `residency.clean` changed: the host holds the same content, or does not any longer.
  virtual void clean_changed(UmBlock&) {}
  // `residency.migrated` is about to rise, and has risen.
  virtual void before_renewal(UmBlock&) {}
  virtual void renewed(UmBlock&) {}
  // A launch begins: those up to it are past.
  virtual void launch_passed() {}
  // What was predicted does not come: no launch is expected.
  virtual void prediction_failed() {}

  // The block that leaves first of all living ones, whatever is expected; nullptr: there is none.
  virtual UmBlock* first() = 0;
  virtual std::uint64_t expected_blocks() const { return 0; }
  // For a time when the link is idle: the block that is needed last of those that are needed only
  // after that launch, and by a launch up to `known_until` where none is expected yet. nullptr:
  // none is known.
  virtual UmBlock* needed_after(LaunchIndex, LaunchIndex /*known_until*/) { return nullptr; }
  // The blocks that launches after that one expect, the farthest first; `visit` leaves them where
  // they are.
  virtual void for_each_expected_after(LaunchIndex, const std::function<void(UmBlock&)>&) {}

 protected:
  // What the order makes of the events above.
  virtual void apply_use(UmBlock&) {}
  virtual void apply_prospect(UmBlock& block);
  virtual void apply_expectation(UmBlock&, LaunchIndex) {}
  virtual void apply_distant_expectation(UmBlock& block, LaunchIndex by) {
    apply_expectation(block, by);
  }
  // A living block is subject to the order, or is not any longer.
  virtual void insert(UmBlock& block) = 0;
  virtual void remove(UmBlock& block) = 0;
  // The living block that leaves next.
  virtual Victim choose(const VictimQuery& query) = 0;
  // The content of a living block died while dead blocks are victims like others.
  virtual void expectation_ended(UmBlock&) {}
  // Called before a victim is chosen.
  virtual void settle() {}

  // It is not prefetched any longer: it was used, or what it was fetched for is past.
  void clear_prefetched(UmBlock& block) {
    prefetched_ -= std::exchange(block.order.prefetched, false) ? 1 : 0;
  }
  void restore_prefetched(UmBlock& block) {
    prefetched_ += std::exchange(block.order.prefetched, true) ? 0 : 1;
  }
  void note_use(UmBlock& block) const {
    block.order.migrations_at_use = view_.residency.migrations();
  }
  // Takes it out of the dead blocks, the pinned ones or the order.
  void take_out(UmBlock& block);
  bool free_to_leave(const UmBlock& block, const VictimQuery& query) const {
    ++view_.operations;
    return block.moves.claim != query.claim;
  }
  const Clock& now() const { return view_.now; }
  const ResidencyBelief& residency() const { return view_.residency; }

 private:
  static bool is_pinned(const UmBlock& block) { return block.order.place == BlockPlace::kPinned; }
  // Into the order, or among the pinned.
  void enter(UmBlock& block);

  View view_;
  BlockList dead_;    // the first to die first
  BlockList pinned_;  // the first to arrive, or to be pinned, first
  std::uint64_t prefetched_ = 0;
};

using EvictionPolicyFactory = std::function<std::unique_ptr<EvictionPolicy>(
    const deepum_core_settings&, EvictionPolicy::View)>;
// The policy that settings name.
std::unique_ptr<EvictionPolicy> make_eviction_policy(const deepum_core_settings& settings,
                                                     EvictionPolicy::View view);

}  // namespace deepum::core
