#include "arena.h"

#include <algorithm>
#include <utility>

#include "guarded.hpp"
#include "placement.hpp"
#include "problem.hpp"
#include "search.hpp"

using deepum::guarded;
using deepum::arena::Clock;
using deepum::arena::Placement;
using deepum::arena::Problem;
using deepum::arena::Search;

struct deepum_arena_problem {
  Problem problem;
};

struct deepum_arena_search {
  Search search;
  std::size_t size;
};

namespace {

constexpr std::int64_t kFailed = -2;
constexpr double kMostSeconds = 1e9;

}  // namespace

extern "C" {

deepum_arena_problem* deepum_arena_create(const deepum_arena_buffer* buffers, size_t count) {
  return guarded(static_cast<deepum_arena_problem*>(nullptr), [&]() -> deepum_arena_problem* {
    std::optional<Problem> made = Problem::make({buffers, count});
    return made ? new deepum_arena_problem{*std::move(made)} : nullptr;
  });
}

void deepum_arena_destroy(deepum_arena_problem* problem) { delete problem; }

int64_t deepum_arena_load(const deepum_arena_problem* problem) { return problem->problem.load(); }

int64_t deepum_arena_overlap(const deepum_arena_problem* problem) {
  return problem->problem.overlap();
}

int64_t deepum_arena_height(const deepum_arena_problem* problem, const int64_t* offsets) {
  return guarded(kFailed, [&] {
    return deepum::arena::height(problem->problem, {offsets, problem->problem.size()});
  });
}

int64_t deepum_arena_place(const deepum_arena_problem* problem, const int32_t* order,
                           enum deepum_arena_fit fit, int64_t* offsets) {
  return guarded(kFailed, [&] {
    Placement placement(problem->problem);
    for (std::size_t i = 0; i < problem->problem.size(); ++i) {
      offsets[order[i]] = placement.place(order[i], fit);
    }
    return placement.height();
  });
}

deepum_arena_search* deepum_arena_search_create(const deepum_arena_problem* problem, int64_t goal,
                                                uint64_t seed) {
  return guarded(static_cast<deepum_arena_search*>(nullptr), [&] {
    return new deepum_arena_search{Search(problem->problem, goal, seed), problem->problem.size()};
  });
}

void deepum_arena_search_destroy(deepum_arena_search* search) { delete search; }

enum deepum_arena_found deepum_arena_search_next(deepum_arena_search* search, double seconds,
                                                 int64_t* offsets, int64_t* height,
                                                 int64_t* bound) {
  return guarded(DEEPUM_ARENA_FAILED, [&] {
    const auto left = std::chrono::duration<double>(std::clamp(seconds, 0.0, kMostSeconds));
    const deepum_arena_found found =
        search->search.next(Clock::now() + std::chrono::duration_cast<Clock::duration>(left));
    std::ranges::copy(search->search.offsets(), offsets);
    *height = search->search.height();
    *bound = search->search.bound();
    return found;
  });
}

}  // extern "C"
