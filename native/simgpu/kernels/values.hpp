// What a launch of few elements computes, where programs decide by it how they go on: fills, and
// comparisons, logic, the largest and the smallest of integers and booleans. All else reads as
// zeros (docs/simulated-gpu.md, Results).
#pragma once

#include <functional>

#include "truth.hpp"

namespace deepum::simgpu {

// `written`: the whole result, which `compute` writes, reading the operands in memory.
struct Values {
  um_model::Range written;
  std::function<void()> compute;
};

// nullopt: too many elements, or another computation.
std::optional<Values> values_of(const LaunchView& launch, const FindAllocation& find);

}  // namespace deepum::simgpu
