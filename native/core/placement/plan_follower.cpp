#include "placement/plan_follower.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {

void PlanFollower::follow(Plan plan) {
  plan_ = std::move(plan);
  position_ = PlanPosition(plan_.launches);
  plan_copies_ = plan_.copies();
  copies_.leave_to_plan(false);
  waiting_.clear();
  next_ = 0;
  first_move_.assign(plan_.launches.size() + 1, plan_.moves.size());
  for (std::size_t i = plan_.moves.size(); i-- > 0;) {
    first_move_[plan_.moves[i].launch] = i;
  }
  for (std::size_t launch = plan_.launches.size(); launch-- > 0;) {
    first_move_[launch] = std::min(first_move_[launch], first_move_[launch + 1]);
  }
}

void PlanFollower::followed(const Launch& launch, const LaunchChain::Step& step) {
  fallback_.followed(launch, step);
  if (plan_.empty()) {
    return;
  }
  if (waits_for_copies()) {
    lose_place();
    return;
  }
  if (on_plan()) {  // the program did not wait where the plan's did
    carry_out(*position_.current(), DEEPUM_PLAN_AT_WAIT);
  }
  statistics_.operations += position_.candidates();
  position_.launched(launch.kernel);
  copies_.leave_to_plan(plan_copies_ && (on_plan() || position_.odd()));
  if (position_.odd()) {
    return;
  }
  if (!on_plan()) {
    waiting_.clear();
    return;
  }
  ++statistics_.planned_launches;
  carry_out_left_out();
  next_ = first_move_[*position_.current()];
  carry_out(*position_.current(), DEEPUM_PLAN_BEFORE_LAUNCH);
}

void PlanFollower::launched(const Launch& launch) {
  if (position_.odd()) {
    return;
  }
  if (!on_plan()) {
    fallback_.launched(launch);
    return;
  }
  carry_out(*position_.current(), DEEPUM_PLAN_AFTER_LAUNCH);
}

void PlanFollower::about_to_wait() {
  if (position_.odd()) {
    return;
  }
  if (!on_plan()) {
    fallback_.about_to_wait();
    return;
  }
  carry_out(*position_.current(), DEEPUM_PLAN_AT_WAIT);
}

void PlanFollower::forget() {
  lose_place();
  fallback_.forget();
}

void PlanFollower::lose_place() {
  position_.lose();
  copies_.leave_to_plan(false);
  waiting_.clear();
}

// The plan itself makes the room that it needs; what else leaves for a launch at hand is chosen as
// without a plan.
LaunchIndex PlanFollower::promised_until() const {
  return on_plan() || position_.odd() ? now_.launch : fallback_.promised_until();
}

void PlanFollower::carry_out_left_out() {
  for (std::uint32_t back = position_.left_out(); back > 0; --back) {
    const std::uint32_t launch = position_.before(*position_.current(), back);
    next_ = first_move_[launch];
    carry_out(launch, DEEPUM_PLAN_AT_WAIT);
  }
}

void PlanFollower::carry_out(std::uint32_t launch, std::uint8_t until_point) {
  const std::size_t end = first_move_[launch + 1];
  for (; next_ < end && plan_.moves[next_].point <= until_point; ++next_) {
    const deepum_planned_move& move = plan_.moves[next_];
    if (move.kind == DEEPUM_PLAN_PREFETCH || move.kind == DEEPUM_PLAN_DUPLICATE) {
      if (!waiting_.empty() || !prefetch(move)) {
        waiting_.push_back(move);
      }
    } else if (BlockSpan found{}; memory_.locate(move.name, move.first, move.count, found)) {
      const std::span<UmBlock> blocks = memory_.blocks(found);
      move.kind == DEEPUM_PLAN_EVICT ? evict(blocks) : copy_out(blocks);
    }
  }
  prefetch_waiting();
}

void PlanFollower::evict(std::span<UmBlock> blocks) {
  statistics_.operations += blocks.size();
  for (UmBlock& block : blocks) {
    if (block.residency.resident && devices_.of(block).residency.under_pressure()) {
      departures_.evict(block, now_.launch);
    }
  }
}

void PlanFollower::copy_out(std::span<UmBlock> blocks) {
  statistics_.operations += blocks.size();
  for (UmBlock& block : blocks) {
    if (block.residency.resident && devices_.of(block).residency.under_pressure()) {
      copies_.write_back(block);
    }
  }
}

bool PlanFollower::prefetch(const deepum_planned_move& move) {
  BlockSpan found{};
  if (!memory_.locate(move.name, move.first, move.count, found)) {
    return true;
  }
  const std::span<UmBlock> blocks = memory_.blocks(found);
  statistics_.operations += blocks.size();
  // Of a plan that says what has a copy on the host, what it does not say has none: it is written.
  const SpanUse use{
      plan_copies_ && move.kind == DEEPUM_PLAN_PREFETCH ? Use::kWrites : Use::kUnknown,
      move.kind == DEEPUM_PLAN_DUPLICATE};
  return std::ranges::all_of(blocks, [&](UmBlock& block) {
    return placer_.place_scheduled(block, use, plan_.launches.size());
  });
}

// In order of need: what comes behind one that there is no room for waits as well.
void PlanFollower::prefetch_waiting() {
  std::size_t done = 0;
  while (done < waiting_.size() && prefetch(waiting_[done])) {
    ++done;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace deepum::core
