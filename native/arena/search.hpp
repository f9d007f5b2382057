// The search for a low arena: greedy placements first; then, of the part that is highest, rounds of
// the canonical search, each with other ranks and its own budget of nodes.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "canonical.hpp"
#include "parts.hpp"
#include "problem.hpp"

namespace deepum::arena {

class Search {
 public:
  Search(const Problem& problem, std::int64_t goal, std::uint64_t seed);

  deepum_arena_found next(Clock::time_point until);
  std::span<const std::int64_t> offsets() const { return offsets_; }
  std::int64_t height() const;
  std::int64_t bound() const;

 private:
  struct State {
    Part part;
    std::int64_t height;
    std::int64_t bound;
    std::uint64_t round = 0;
    std::uint64_t relaxed = 0;  // rounds that asked for more than the least
    bool eager = false;         // such a round found something
  };

  void place_greedily(State& state);
  void place_in_order(State& state, std::span<const std::int32_t> order, deepum_arena_fit fit);
  void improve(State& state, Clock::time_point until);  // or its bound
  // The height that a round asks for.
  std::int64_t target(const State& state, bool relaxed) const;
  std::vector<std::int32_t> order(const State& state);  // what goes first, with some chance
  std::int64_t goal(const State& state) const { return std::max(goal_, state.bound); }
  double chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  const Problem& problem_;
  std::int64_t goal_;
  std::mt19937_64 random_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> tried_;
  std::vector<double> blame_;
  std::vector<std::int32_t> rank_;
  std::vector<State> states_;
  std::int64_t below_ = 0;       // the height of what lies below the parts
  bool first_reported_ = false;  // the first placement was
};

}  // namespace deepum::arena
