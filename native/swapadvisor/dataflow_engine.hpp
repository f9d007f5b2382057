// The simulated dataflow engine: one stream that computes, one that brings in, one that takes out.
#pragma once

#include <span>
#include <vector>

#include "dataflow_graph.hpp"

namespace deepum::swapadvisor {

// Writes when each node runs; `runs` by position. Each stream takes, of its nodes whose
// predecessors have ended, the one that was planned first; operators keep the schedule. Returns
// when the last one ends, infinite where some never could run.
double run_engine(const Graph& graph, std::span<const std::int32_t> schedule, std::span<Move> moves,
                  std::span<Run> runs);

}  // namespace deepum::swapadvisor
