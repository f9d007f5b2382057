#include <algorithm>
#include <queue>
#include <utility>

#include "planners.hpp"

namespace deepum::planning {
namespace {

// Needed later by so many iterations, for the order of victims: what is not needed again, and what
// the preset keeps.
constexpr double kNotNeeded = 10, kKept = -100;

class Belady {
 public:
  Belady(const Problem& problem, std::int64_t memory, const BeladyOrder& by,
         std::span<const std::uint8_t> preset, PlanView plan)
      : problem_(problem),
        memory_(memory),
        by_(by),
        preset_(preset),
        plan_(plan),
        gap_of_(problem.items(), kAway),
        copied_(problem.versions(), false) {}

  // Once what is on the device at the end of an iteration is what it was at its beginning, the plan
  // repeats: mostly in the third.
  bool run() {
    for (int iteration = 0; iteration < 3; ++iteration) {
      std::ranges::fill(plan_, std::uint8_t{0});
      victims_ = {};
      for (const std::int32_t gap : gap_of_) {
        if (gap >= 0) {
          victims_.push({needed(gap) - problem_.launches(), gap});
        }
      }
      for (std::int32_t launch = 0; launch < problem_.launches(); ++launch) {
        if (!pass(launch)) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static constexpr std::int32_t kAway = -1, kInUse = -2;
  using Victim = std::pair<double, std::int32_t>;  // launch of its next use, and its gap

  double needed(std::int32_t index) const {
    const Gap& gap = problem_.gap(index);
    const double launches = problem_.launches();
    double at = gap.end + (gap.fetches ? 0.0 : kNotNeeded * launches);
    at = gap.death != kNone && by_.keeps_ending ? gap.death : at;
    at += !preset_.empty() && preset_[index] == static_cast<std::uint8_t>(Preset::kKept)
              ? kKept * launches
              : 0.0;
    return at + (gap.writer == kNone || copied_[gap.version] ? by_.clean_bonus : 0.0);
  }

  void evict(std::int32_t index) {
    const Gap& gap = problem_.gap(index);
    gap_of_[gap.item] = kAway;
    there_ -= problem_.bytes(gap.item);
    plan_[index] = 1;
    copied_[gap.version] = true;
  }

  bool pass(std::int32_t launch) {
    for (const std::int32_t index : problem_.dying(launch)) {
      const std::int32_t item = problem_.gap(index).item;
      if (gap_of_[item] == index) {
        gap_of_[item] = kAway;
        there_ -= problem_.bytes(item);
      }
    }
    const std::span<const std::int32_t> used = problem_.beginning(launch);
    for (const std::int32_t index : used) {
      const Gap& gap = problem_.gap(index);
      there_ += gap_of_[gap.item] == kAway ? problem_.bytes(gap.item) : 0;
      gap_of_[gap.item] = kInUse;
      if (gap.writer == launch) {
        copied_[gap.version] = false;
      }
    }
    while (there_ > memory_) {
      if (victims_.empty()) {
        return false;
      }
      const std::int32_t index = victims_.top().second;
      victims_.pop();
      if (gap_of_[problem_.gap(index).item] == index) {
        evict(index);
      }
    }
    for (const std::int32_t index : used) {
      if (!preset_.empty() && preset_[index] == static_cast<std::uint8_t>(Preset::kEvicted)) {
        evict(index);
      } else {
        gap_of_[problem_.gap(index).item] = index;
        victims_.push({needed(index), index});
      }
    }
    return true;
  }

  const Problem& problem_;
  std::int64_t memory_;
  BeladyOrder by_;
  std::span<const std::uint8_t> preset_;
  PlanView plan_;
  std::vector<std::int32_t> gap_of_;  // by item: the gap in which it is on the device
  std::vector<bool> copied_;          // by version
  std::priority_queue<Victim> victims_;
  std::int64_t there_ = 0;
};

}  // namespace

// Victims may change from iteration to iteration for ever. What left in one leaves in all then, and
// the rest is chosen anew, until the iteration fits that the plan says.
bool belady(const Problem& problem, std::int64_t memory, const BeladyOrder& order,
            std::span<const std::uint8_t> preset, PlanView plan) {
  std::vector<std::uint8_t> leaves(preset.begin(), preset.end());
  for (;;) {
    if (!Belady(problem, memory, order, leaves, plan).run()) {
      return false;
    }
    const std::vector<std::int64_t> there = problem.occupancy(plan, 1);
    if (*std::max_element(there.begin(), there.begin() + problem.launches()) <= memory) {
      return true;
    }
    leaves.resize(plan.size(), static_cast<std::uint8_t>(Preset::kFree));
    bool more = false;
    for (std::size_t gap = 0; gap < plan.size(); ++gap) {
      constexpr auto kEvicted = static_cast<std::uint8_t>(Preset::kEvicted);
      more = more || (plan[gap] != 0 && leaves[gap] != kEvicted);
      leaves[gap] = plan[gap] != 0 ? kEvicted : leaves[gap];
    }
    if (!more) {
      return false;
    }
  }
}

}  // namespace deepum::planning
