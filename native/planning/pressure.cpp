#include <algorithm>
#include <queue>
#include <utility>

#include "planners.hpp"
#include "range_maximum.hpp"

namespace deepum::planning {
namespace {

constexpr double kLeastTransfer = 1e-3;  // ns a byte: of what moves nothing

class Pressure {
 public:
  Pressure(const Problem& problem, std::int64_t memory, PlanView plan)
      : problem_(problem),
        memory_(memory),
        plan_(plan),
        excess_ns_(2 * static_cast<std::size_t>(problem.launches()) + 1),
        copied_(problem.versions(), false) {}

  bool run() {
    std::ranges::fill(plan_, std::uint8_t{0});
    there_ = problem_.occupancy(plan_, 1);
    there_.resize(problem_.launches());
    sum_up();
    std::priority_queue<std::pair<double, std::int32_t>> best;
    const auto gaps = static_cast<std::int32_t>(problem_.gaps().size());
    for (std::int32_t index = 0; index < gaps; ++index) {
      if (const double worth = worth_of(index); worth > 0) {
        best.push({worth, index});
      }
    }
    while (!best.empty() && !fits()) {
      const std::int32_t index = best.top().second;
      best.pop();
      const double worth = worth_of(index);  // it only falls
      if (worth <= 0) {
        continue;
      }
      if (!best.empty() && worth < best.top().first) {
        best.push({worth, index});
        continue;
      }
      const Gap& gap = problem_.gap(index);
      plan_[index] = 1;
      copied_[gap.version] = true;
      for (std::int32_t launch = gap.start + 1; launch < Problem::there_until(gap, false);
           ++launch) {
        there_[launch % problem_.launches()] -= problem_.bytes(gap.item);
      }
      sum_up();
    }
    return fits();
  }

 private:
  bool fits() const { return excess_ns_[problem_.launches()] == 0; }

  void sum_up() {
    for (std::int32_t launch = 0; launch < 2 * problem_.launches(); ++launch) {
      const std::int32_t at = launch % problem_.launches();
      excess_ns_[launch + 1] =
          excess_ns_[launch] + (there_[at] > memory_ ? problem_.launch_ns(at) : 0.0);
    }
  }

  double worth_of(std::int32_t index) const {
    const Gap& gap = problem_.gap(index);
    const std::int32_t end = Problem::there_until(gap, false);
    if (end <= gap.start + 1) {
      return 0;
    }
    const bool copies = gap.writer != kNone && !copied_[gap.version];
    const double bytes = static_cast<double>(problem_.bytes(gap.item));
    const double moves = (gap.fetches ? problem_.fetch_ns(gap.item) : 0.0) +
                         (copies ? problem_.copy_ns(gap.item) : 0.0);
    return (excess_ns_[end] - excess_ns_[gap.start + 1]) * bytes /
           std::max(moves, kLeastTransfer * bytes);
  }

  const Problem& problem_;
  std::int64_t memory_;
  PlanView plan_;
  std::vector<std::int64_t> there_;  // bytes by launch
  std::vector<double> excess_ns_;    // before each launch of two iterations, since the first
  std::vector<bool> copied_;         // by version
};

}  // namespace

bool relieve_pressure(const Problem& problem, std::int64_t memory, PlanView plan) {
  return Pressure(problem, memory, plan).run();
}

std::size_t fill(const Problem& problem, std::span<const std::int32_t> order, std::int64_t memory,
                 PlanView plan) {
  const std::int32_t launches = problem.launches();
  RangeMaximum there(problem.occupancy(plan, 1));
  std::size_t kept = 0;
  for (const std::int32_t index : order) {
    const Gap& gap = problem.gap(index);
    const std::int32_t first = gap.start + 1, end = Problem::there_until(gap, false);
    const std::int64_t bytes = problem.bytes(gap.item);
    if (plan[index] == 0 || there.greatest(first, std::min(end, 2 * launches)) + bytes > memory) {
      continue;
    }
    plan[index] = 0;
    ++kept;
    for (const std::int32_t shift : {-launches, 0, launches}) {
      there.add(std::max(0, first + shift), std::min(2 * launches, end + shift), bytes);
    }
  }
  return kept;
}

}  // namespace deepum::planning
