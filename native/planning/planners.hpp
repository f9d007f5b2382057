// Planners that need no solver. Each writes a plan, a byte for each gap: 1, the item is evicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"

namespace deepum::planning {

using PlanView = std::span<std::uint8_t>;
enum class Preset : std::uint8_t { kFree = 0, kEvicted = 1, kKept = 2 };

// The order of victims.
struct BeladyOrder {
  double clean_bonus;  // launches by which what needs no copy counts as needed later
  // What ends before its next use counts as needed at its end, where it makes its room by itself;
  // else as not needed any more.
  bool keeps_ending;
};

// While there is too much, what is needed last leaves. `preset`: empty, or by gap. False: a launch
// needs more than `memory`.
bool belady(const Problem& problem, std::int64_t memory, const BeladyOrder& order,
            std::span<const std::uint8_t> preset, PlanView plan);

// While there is too much, the gap leaves that takes away the most pressure (bytes too many times
// nanoseconds) for the time that its transfers take. False: it cannot fit.
bool relieve_pressure(const Problem& problem, std::int64_t memory, PlanView plan);

// Evicted gaps stay where they fit, in that order; how many.
std::size_t fill(const Problem& problem, std::span<const std::int32_t> order, std::int64_t memory,
                 PlanView plan);

// Local search from a plan that works; how many tries made it better.
std::size_t search(const Problem& problem, std::size_t tries, std::uint64_t seed, PlanView plan);

}  // namespace deepum::planning
