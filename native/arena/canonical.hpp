// Search for an arena of a given height among canonical solutions: each buffer lies at the base or
// on another one, and buffers are placed in the order of their offsets (Moffitt, "MiniMalloc",
// ASPLOS'23).
//
// Such a solution of the least sum of offsets exists wherever any solution does, so that a buffer
// is passed over where one that is left would fit below it, and a buffer that was passed over comes
// to lie on one that is still to be placed. A branch ends where in some section what cannot lie
// lower than an offset is too much to lie above it. What no remaining lifetime connects is searched
// apart.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"

namespace deepum::arena {

using Clock = std::chrono::steady_clock;

class Canonical {
 public:
  enum class Outcome { kFound, kNone, kBudget, kLate };

  // `rank`, by buffer: which of those of one offset goes first; no two are equal. `blame`, by
  // buffer: how often branches ended in its sections, added to.
  Canonical(const Problem& problem, std::int64_t base, std::span<const std::int32_t> rank,
            std::span<double> blame);

  // Of these buffers, by begin, at most so high, visiting so many nodes. Writes their offsets where
  // some were found; kNone: there are none.
  Outcome run(std::span<const std::int32_t> buffers, std::int64_t height, std::int64_t nodes,
              Clock::time_point until, std::span<std::int64_t> offsets);

 private:
  struct Last {  // that was placed
    std::int64_t offset;
    std::int32_t rank;
  };
  struct Candidate {
    std::int64_t offset;
    std::int32_t index;
  };

  bool solve(std::span<const std::int32_t> left, Last last);
  bool solve_apart(std::span<const std::int32_t> left, Last last);
  bool branch(std::span<const std::int32_t> left, Last last);
  bool spent();
  // The lowest offset that it can still get; -1: none.
  std::int64_t least(std::int32_t index, std::span<const std::int32_t> left, Last last) const;
  bool can_fit(std::span<const std::int32_t> left, Last last);
  bool passed(std::int32_t index, Last last) const {
    return lowest_[index] < last.offset ||
           (lowest_[index] == last.offset && rank_[index] < last.rank);
  }

  const Problem& problem_;
  std::span<const std::int32_t> rank_;
  std::span<double> blame_;
  std::span<std::int64_t> offsets_;
  std::vector<std::int64_t> lowest_;  // by buffer: above what was placed
  std::vector<std::int64_t> above_;   // by section, while it is found whether all can fit
  std::vector<Candidate> by_offset_;
  std::int64_t base_;
  std::int64_t height_ = 0;
  std::int64_t nodes_ = 0;
  Clock::time_point until_;
  Outcome outcome_ = Outcome::kNone;
};

}  // namespace deepum::arena
