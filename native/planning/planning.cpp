#include "planning.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "guarded.hpp"
#include "planners.hpp"
#include "replay.hpp"

using deepum::guarded;
using deepum::planning::Gap;
using deepum::planning::Problem;

struct deepum_planning_problem {
  Problem problem;
  std::size_t gaps() const { return problem.gaps().size(); }
};

namespace {

// Rows of the replay's timeline, as many as there is room for. Returns how many there are.
template <typename Row>
size_t rows_of_timeline(const deepum_planning_problem& problem, const uint8_t* plan,
                        const deepum_planning_options& options,
                        std::vector<Row> deepum::planning::Timeline::* rows, Row* found,
                        size_t most) {
  return guarded(std::size_t{0}, [&] {
    const deepum::planning::Timeline timeline =
        deepum::planning::Replay(problem.problem, {plan, problem.gaps()}, options).timeline();
    const std::vector<Row>& all = timeline.*rows;
    std::copy_n(all.begin(), std::min(all.size(), most), found);
    return all.size();
  });
}

}  // namespace

extern "C" {

deepum_planning_problem* deepum_planning_create(const deepum_planning_machine* machine,
                                                const double* launch_ns, size_t launches,
                                                const int64_t* item_bytes, size_t items,
                                                const deepum_planning_event* events, size_t count) {
  return guarded(static_cast<deepum_planning_problem*>(nullptr), [&]() -> deepum_planning_problem* {
    std::optional<Problem> made =
        Problem::make(*machine, {launch_ns, launches}, {item_bytes, items}, {events, count});
    return made ? new deepum_planning_problem{*std::move(made)} : nullptr;
  });
}

void deepum_planning_destroy(deepum_planning_problem* problem) { delete problem; }

size_t deepum_planning_gap_count(const deepum_planning_problem* problem) { return problem->gaps(); }

void deepum_planning_gaps(const deepum_planning_problem* problem, deepum_planning_gap* gaps) {
  std::ranges::transform(problem->problem.gaps(), gaps, [](const Gap& gap) {
    return deepum_planning_gap{gap.item,
                               gap.start,
                               gap.end,
                               gap.death,
                               gap.writer,
                               gap.version,
                               static_cast<std::uint8_t>(gap.fetches ? 1 : 0)};
  });
}

void deepum_planning_occupancy(const deepum_planning_problem* problem, const uint8_t* plan,
                               int64_t* bytes) {
  guarded(0, [&] {
    const auto there = problem->problem.occupancy({plan, problem->gaps()}, 1);
    std::copy_n(there.begin(), problem->problem.launches(), bytes);
    return 0;
  });
}

deepum_planning_result deepum_planning_replay(const deepum_planning_problem* problem,
                                              const uint8_t* plan,
                                              const deepum_planning_options* options,
                                              double* stall_ns, double* ends_ns,
                                              int32_t* fetched_behind, int32_t* copied_behind,
                                              uint8_t* left) {
  return guarded(deepum_planning_result{}, [&] {
    const auto launches = static_cast<std::size_t>(problem->problem.launches());
    return deepum::planning::Replay(problem->problem, {plan, problem->gaps()}, *options)
        .run({stall_ns, stall_ns == nullptr ? 0 : launches},
             {ends_ns, ends_ns == nullptr ? 0 : launches},
             {fetched_behind, fetched_behind == nullptr ? 0 : problem->gaps()},
             {copied_behind, copied_behind == nullptr ? 0 : problem->gaps()},
             {left, left == nullptr ? 0 : problem->gaps()});
  });
}

size_t deepum_planning_transfers(const deepum_planning_problem* problem, const uint8_t* plan,
                                 const deepum_planning_options* options,
                                 deepum_planning_transfer* transfers, size_t most) {
  return rows_of_timeline(*problem, plan, *options, &deepum::planning::Timeline::transfers,
                          transfers, most);
}

size_t deepum_planning_levels(const deepum_planning_problem* problem, const uint8_t* plan,
                              const deepum_planning_options* options, deepum_planning_level* levels,
                              size_t most) {
  return rows_of_timeline(*problem, plan, *options, &deepum::planning::Timeline::levels, levels,
                          most);
}

int deepum_planning_belady(const deepum_planning_problem* problem, int64_t memory_bytes,
                           double clean_bonus, int keeps_ending, const uint8_t* preset,
                           uint8_t* plan) {
  return guarded(-1, [&] {
    return deepum::planning::belady(
               problem->problem, memory_bytes, {clean_bonus, keeps_ending != 0},
               {preset, preset == nullptr ? 0 : problem->gaps()}, {plan, problem->gaps()})
               ? 0
               : -1;
  });
}

int deepum_planning_pressure(const deepum_planning_problem* problem, int64_t memory_bytes,
                             uint8_t* plan) {
  return guarded(-1, [&] {
    return deepum::planning::relieve_pressure(problem->problem, memory_bytes,
                                              {plan, problem->gaps()})
               ? 0
               : -1;
  });
}

size_t deepum_planning_fill(const deepum_planning_problem* problem, const int32_t* order,
                            size_t count, int64_t memory_bytes, uint8_t* plan) {
  return guarded(std::size_t{0}, [&] {
    return deepum::planning::fill(problem->problem, {order, count}, memory_bytes,
                                  {plan, problem->gaps()});
  });
}

size_t deepum_planning_search(const deepum_planning_problem* problem, uint8_t* plan, size_t tries,
                              uint64_t seed) {
  return guarded(std::size_t{0}, [&] {
    return deepum::planning::search(problem->problem, tries, seed, {plan, problem->gaps()});
  });
}

}  // extern "C"
