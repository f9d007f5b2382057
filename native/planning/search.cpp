#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "planners.hpp"
#include "replay.hpp"

namespace deepum::planning {
namespace {

constexpr std::array kCleanBonuses{0.0, 0.1, 0.25, 0.5, 1.0};  // iterations
constexpr double kMostBytes = 0.06;  // of the memory, that one try changes at most
constexpr double kWidestWindow = 8;  // part of an iteration, around the launch of a try

class Search {
 public:
  Search(const Problem& problem, std::uint64_t seed, PlanView plan)
      : problem_(problem),
        plan_(plan),
        random_(seed),
        stall_(problem.launches()),
        preset_(plan.size()),
        made_(plan.size()),
        order_(plan.size()),
        best_ns_(time(plan, stall_)) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  std::size_t run(std::size_t tries) {
    std::size_t better = 0;
    for (std::size_t i = 0; i < tries && !plan_.empty(); ++i) {
      better += attempt() ? 1 : 0;
    }
    return better;
  }

 private:
  enum class Change { kKeepWhatIsWaitedFor, kEvictAcross, kOtherVictims };

  // Infinite where a launch could never run.
  double time(std::span<const std::uint8_t> plan, std::span<double> stall) const {
    std::ranges::fill(stall, 0.0);
    const deepum_planning_options options{.reach = 2 * problem_.launches()};
    const deepum_planning_result result = Replay(problem_, plan, options).run(stall, {});
    return result.stuck < 0 ? result.ns : std::numeric_limits<double>::infinity();
  }

  double chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::size_t pick(std::size_t count) { return random_() % count; }

  // A launch, by how long it waits.
  std::int32_t waiting_launch() {
    const double all = std::accumulate(stall_.begin(), stall_.end(), 0.0);
    if (all <= 0) {
      return static_cast<std::int32_t>(pick(stall_.size()));
    }
    double rest = chance() * all;
    const auto found = std::ranges::find_if(stall_, [&](double one) { return (rest -= one) <= 0; });
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(
        found - stall_.begin(), static_cast<std::ptrdiff_t>(stall_.size()) - 1));
  }

  // Whether that change, around that launch, applies to the gap.
  bool applies(Change change, std::int32_t index, std::int32_t at, std::int32_t window) const {
    const Gap& gap = problem_.gap(index);
    const std::int32_t launches = problem_.launches();
    const auto before = [&](std::int32_t launch) {
      return ((at - launch) % launches + launches) % launches <= window;
    };
    switch (change) {
      case Change::kKeepWhatIsWaitedFor:
        return plan_[index] != 0 && gap.fetches && before(gap.end);
      case Change::kEvictAcross:
        return plan_[index] == 0 && gap.end - gap.start > window &&
               ((gap.start < at && at < gap.end) ||
                (gap.start < at + launches && at + launches < gap.end));
      case Change::kOtherVictims:
        return plan_[index] != 0 && before(gap.start);
    }
    return false;
  }

  bool attempt() {
    std::ranges::copy(plan_, preset_.begin());
    const double kind = chance();
    const Change change = kind < 0.5    ? Change::kKeepWhatIsWaitedFor
                          : kind < 0.75 ? Change::kEvictAcross
                                        : Change::kOtherVictims;
    const std::int32_t at = waiting_launch();
    const auto window =
        1 + static_cast<std::int32_t>(std::pow(chance(), 2) * problem_.launches() / kWidestWindow);
    const double enough =
        std::pow(chance(), 2) * kMostBytes * static_cast<double>(problem_.memory());
    std::ranges::rotate(order_, order_.begin() + static_cast<std::ptrdiff_t>(pick(order_.size())));
    const auto to = static_cast<std::uint8_t>(change == Change::kEvictAcross ? Preset::kEvicted
                                                                             : Preset::kKept);
    double changed = 0;
    for (const std::int32_t index : order_) {
      if (applies(change, index, at, window)) {
        preset_[index] = to;
        changed += static_cast<double>(problem_.bytes(problem_.gap(index).item));
        if (changed >= enough) {
          break;
        }
      }
    }
    const double bonus = kCleanBonuses[pick(kCleanBonuses.size())] * problem_.launches();
    const BeladyOrder order{bonus, chance() < 0.5};
    if (changed == 0 || !belady(problem_, problem_.memory(), order, preset_, made_)) {
      return false;
    }
    if (chance() < 0.5) {
      keep_what_fits(change);
    }
    std::vector<double> stall(stall_.size());
    const double ns = time(made_, stall);
    if (ns >= best_ns_) {
      return false;
    }
    best_ns_ = ns;
    stall_ = std::move(stall);
    std::ranges::copy(made_, plan_.begin());
    return true;
  }

  void keep_what_fits(Change change) {
    std::vector<std::int32_t> evicted;
    for (const std::int32_t index : order_) {
      const bool evicted_here =
          change == Change::kEvictAcross && preset_[index] != 0 && plan_[index] == 0;
      if (made_[index] != 0 && !evicted_here) {
        evicted.push_back(index);
      }
    }
    if (chance() < 0.5) {  // what launches wait for first
      std::ranges::stable_sort(evicted, [&](std::int32_t a, std::int32_t b) {
        const std::int32_t launches = problem_.launches();
        return stall_[problem_.gap(a).end % launches] > stall_[problem_.gap(b).end % launches];
      });
    }
    fill(problem_, evicted, problem_.memory(), made_);
  }

  const Problem& problem_;
  PlanView plan_;
  std::mt19937_64 random_;
  std::vector<double> stall_;  // by launch, with the plan
  std::vector<std::uint8_t> preset_, made_;
  std::vector<std::int32_t> order_;
  double best_ns_;
};

}  // namespace

std::size_t search(const Problem& problem, std::size_t tries, std::uint64_t seed, PlanView plan) {
  return Search(problem, seed, plan).run(tries);
}

}  // namespace deepum::planning
