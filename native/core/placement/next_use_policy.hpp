// The order by next use (Belady): what is needed last leaves first, as far as the chain predicts it
// or earlier iterations taught it. A block that was used just now cools down before its next use
// counts, so that its space comes in time.
#pragma once

#include <algorithm>

#include "placement/listed_policy.hpp"

namespace deepum::core {

class NextUsePolicy final : public ListedPolicy {
 public:
  // `launch_queue`: launches that the driver lets the host be ahead of the GPU.
  NextUsePolicy(std::uint64_t launch_queue, const deepum_order_parameters& parameters, View view);

  void clean_changed(UmBlock& block) override;

 protected:
  void apply_use(UmBlock& block) override;
  void apply_prospect(UmBlock& block) override { cool_down(block); }
  void apply_expectation(UmBlock& block, LaunchIndex by) override;
  void apply_distant_expectation(UmBlock& block, LaunchIndex by) override;
  Victim choose(const VictimQuery& query) override;
  void settle() override;

 private:
  // A use was missed that had been learned: what the end of the chain says of the block is that of
  // a later iteration.
  bool missed(const UmBlock& block) const {
    return block.uses.next != 0 && block.uses.next <= now().launch;
  }
  void cool_down(UmBlock& block);
  bool cooled_down(const UmBlock& block) const;
  void wake(UmBlock& block);
  Victim find(const VictimQuery& query);
  UmBlock* earliest_of_last(UmBlock& victim, const VictimQuery& query);
  // The launch after which what is needed may leave, and whether that block may.
  static LaunchIndex beyond(const VictimQuery& query) {
    return std::max(query.for_launch, query.promised_until);
  }
  bool leaves_for(const UmBlock& block, const VictimQuery& query) const {
    return free_to_leave(block, query) && !block.order.prefetched;
  }

  std::uint64_t launch_queue_;
  std::uint64_t woken_ = 0;        // blocks that cooled down of late,
  std::uint64_t foreseen_ = 0;     // and those of them whose next use is known
  LaunchIndex evicted_until_ = 0;  // the latest use of what was chosen to leave by a copy
};

}  // namespace deepum::core
