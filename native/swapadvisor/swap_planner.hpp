// The swap planner: Belady's rule within each size class, in two passes (section 4.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataflow_graph.hpp"

namespace deepum::swapadvisor {

struct Pool {
  std::span<const std::int32_t> class_of;  // by tensor
  std::span<const std::int64_t> counts;    // by class
};

struct SwapPlan {
  std::vector<Move> moves;     // times not known yet
  std::int32_t stuck = kNone;  // position of an operator that needs more than its classes have
};

SwapPlan plan_swaps(const Graph& graph, std::span<const std::int32_t> schedule, const Pool& pool,
                    const Options& options);

}  // namespace deepum::swapadvisor
