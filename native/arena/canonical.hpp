// Search for an arena of a given height, bottom up: buffers are placed in the order of their
// offsets (Moffitt, "MiniMalloc", ASPLOS'23).
//
// Where there is any solution, there is one of the least sum of offsets. In it each buffer lies at
// the base or on another one, and what is free below a buffer is too small for it. Each node takes
// the lowest offset that a remaining buffer can have, and the section in which the fewest can have
// it: one of them lies there, or all of them lie higher. These branches exclude each other. One
// ends where
// - in a section, what cannot lie lower than an offset is too much to lie above it;
// - a buffer lies higher than what was placed requires, and no remaining one can be in its way.
// What no remaining lifetime connects is searched apart.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
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
  struct Bounds {
    std::int64_t lowest;   // offset that the buffer can get
    std::int64_t support;  // the top of what was placed below it
  };
  struct Change {
    std::int32_t index;
    Bounds before;
  };

  bool solve(std::span<const std::int32_t> left);
  bool solve_apart(std::span<const std::int32_t> left);
  bool solve_connected(std::span<const std::int32_t> left);
  bool spent();
  // Raises the buffers that lie on others that are left. False: one of them cannot.
  bool raise(std::span<const std::int32_t> left, std::vector<Change>& changes);
  bool can_fit(std::span<const std::int32_t> left);
  // Those that can lie lowest, in the section that has the fewest, by rank.
  std::vector<std::int32_t> options();
  bool place(std::int32_t index, std::span<const std::int32_t> left);
  void set(std::int32_t index, Bounds bounds, std::vector<Change>& changes);
  void undo(std::span<const Change> changes);

  const Problem& problem_;
  std::span<const std::int32_t> rank_;
  std::span<double> blame_;
  std::span<std::int64_t> offsets_;
  std::vector<Bounds> bounds_;  // by buffer
  // Of the last can_fit: lowest offset and buffer, from the highest on; bytes by section.
  std::vector<std::pair<std::int64_t, std::int32_t>> by_lowest_;
  std::vector<std::int64_t> above_;
  std::vector<std::int32_t> changes_;  // by section: of how many can lie lowest
  std::int64_t base_;
  std::int64_t height_ = 0;
  std::int64_t nodes_ = 0;
  Clock::time_point until_;
  Outcome outcome_ = Outcome::kNone;
};

}  // namespace deepum::arena
