#include "search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "placement.hpp"

namespace deepum::arena {
namespace {

constexpr std::size_t kMostBuffers = 4096;  // of a part that is searched: each level keeps a list
constexpr std::int64_t kNodes = 500;        // of a round; of every other one twice as many, and on
constexpr std::int64_t kFirstNodes = 4000;  // of the first round of each measure, without noise
constexpr int kMostDoublings = 10;
constexpr std::uint64_t kRelaxedEvery = 8;             // rounds ask for more than the least
constexpr std::array kRelaxed{0.125, 0.25, 0.5, 1.0};  // of what is above the least
constexpr std::array kNoise{0.2, 0.2, 0.5};            // of ranks, as an exponent
enum Measure : std::size_t { kArea, kLifetime, kSize, kMeasures };

double measured(const Buffer& buffer, std::size_t measure) {
  const double lifetime = buffer.end - buffer.begin;
  const auto size = static_cast<double>(buffer.size);
  return measure == kArea ? lifetime * size : measure == kLifetime ? lifetime : size;
}

}  // namespace

Search::Search(const Problem& problem, std::int64_t goal, std::uint64_t seed)
    : problem_(problem),
      goal_(goal),
      random_(seed),
      offsets_(problem.size()),
      tried_(problem.size()),
      blame_(problem.size(), 1.0),
      rank_(problem.size()) {
  for (Part& part : parts(problem, offsets_)) {
    std::vector<std::int64_t> changes(problem.sections() + 1);
    for (const std::int32_t index : part.buffers) {
      changes[problem[index].begin] += problem[index].size;
      changes[problem[index].end] -= problem[index].size;
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    const std::int64_t bound = part.base + *std::ranges::max_element(changes);
    states_.push_back({.part = std::move(part), .height = 0, .bound = bound});
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem.size()); ++i) {
    below_ = std::max(below_, offsets_[i] + problem[i].size);  // those of parts are still 0
  }
  for (State& state : states_) {
    place_greedily(state);
  }
}

void Search::place_in_order(State& state, std::span<const std::int32_t> order,
                            deepum_arena_fit fit) {
  Placement placement(problem_, state.part.base);
  for (const std::int32_t index : order) {
    tried_[index] = placement.place(index, fit);
  }
  if (state.height == 0 || placement.height() < state.height) {
    state.height = placement.height();
    for (const std::int32_t index : order) {
      offsets_[index] = tried_[index];
    }
  }
}

void Search::place_greedily(State& state) {
  std::vector<std::int32_t> order = state.part.buffers;
  place_in_order(state, order, DEEPUM_ARENA_LOWEST);
  place_in_order(state, order, DEEPUM_ARENA_SMALLEST);
  for (std::size_t measure = 0; measure < kMeasures; ++measure) {
    std::ranges::stable_sort(order, std::greater{}, [&](std::int32_t index) {
      return measured(problem_[index], measure);
    });
    place_in_order(state, order, DEEPUM_ARENA_LOWEST);
    place_in_order(state, order, DEEPUM_ARENA_SMALLEST);
  }
}

std::int64_t Search::height() const {
  return std::accumulate(
      states_.begin(), states_.end(), below_,
      [](std::int64_t most, const State& state) { return std::max(most, state.height); });
}

std::int64_t Search::bound() const {
  return std::accumulate(
      states_.begin(), states_.end(), problem_.load(),
      [](std::int64_t most, const State& state) { return std::max(most, state.bound); });
}

deepum_arena_found Search::next(Clock::time_point until) {
  if (!std::exchange(first_reported_, true)) {
    return DEEPUM_ARENA_BETTER;
  }
  const std::int64_t height_before = height();
  const std::int64_t bound_before = bound();
  while (!states_.empty()) {
    State& highest = *std::ranges::max_element(states_, {}, &State::height);
    if (highest.height <= goal(highest)) {
      break;
    }
    improve(highest, until);
    if (height() < height_before || bound() > bound_before) {
      return DEEPUM_ARENA_BETTER;
    }
    if (Clock::now() >= until) {
      return DEEPUM_ARENA_LATE;
    }
  }
  return DEEPUM_ARENA_DONE;
}

std::vector<std::int32_t> Search::order(const State& state) {
  const std::uint64_t round = state.round;
  const std::size_t measure = round < kMeasures ? round : random_() % kMeasures;
  const double noise = round < kMeasures ? 0.0 : kNoise[random_() % kNoise.size()];
  std::vector<std::pair<double, std::int32_t>> keys;
  for (const std::int32_t index : state.part.buffers) {
    const double factor = std::exp(noise * (2 * chance() - 1));
    keys.emplace_back(-measured(problem_[index], measure) * blame_[index] * factor, index);
  }
  std::ranges::sort(keys);
  std::vector<std::int32_t> made;
  made.reserve(keys.size());
  for (const auto& [key, index] : keys) {
    made.push_back(index);
  }
  return made;
}

std::int64_t Search::target(const State& state, bool relaxed) const {
  if (!relaxed) {
    return goal(state);
  }
  const double above = static_cast<double>(state.height - 1 - goal(state));
  const double part = kRelaxed[state.relaxed % kRelaxed.size()];
  return goal(state) + static_cast<std::int64_t>(above * part);
}

void Search::improve(State& state, Clock::time_point until) {
  const std::vector<std::int32_t> ordered = order(state);
  const std::uint64_t round = state.round++;
  if (ordered.size() > kMostBuffers) {
    place_in_order(state, ordered, DEEPUM_ARENA_LOWEST);
    return;
  }
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    rank_[ordered[i]] = static_cast<std::int32_t>(i);
  }
  const bool relaxed = state.eager || round % kRelaxedEvery == kRelaxedEvery - 1;
  const std::int64_t height = target(state, relaxed);
  const std::int64_t nodes = round < kMeasures
                                 ? kFirstNodes
                                 : kNodes << std::min(std::countr_zero(round + 1), kMostDoublings);
  Canonical canonical(problem_, state.part.base, rank_, blame_);
  const Canonical::Outcome outcome =
      canonical.run(state.part.buffers, height, nodes, until, tried_);
  if (relaxed) {
    state.eager = outcome == Canonical::Outcome::kFound;
    state.relaxed += state.eager ? 0 : 1;
  }
  if (outcome == Canonical::Outcome::kNone) {
    state.bound = std::max(state.bound, height + 1);
  } else if (outcome == Canonical::Outcome::kFound) {
    state.height = 0;
    for (const std::int32_t index : state.part.buffers) {
      offsets_[index] = tried_[index];
      state.height = std::max(state.height, offsets_[index] + problem_[index].size);
    }
  }
}

}  // namespace deepum::arena
