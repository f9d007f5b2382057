// What an instantiated graph does: one execution with the union of its nodes' accesses, taken from
// the graph when it is instantiated.
#pragma once

#include <cuda.h>

#include "execution.hpp"

namespace deepum::hooks {

// Adds the graph's identity and accesses to an execution; marks it partial if the graph is unknown
// or was changed in a way not followed.
void describe_graph(CUgraphExec exec, Execution& execution) noexcept;
void abandon_graphs_in_child() noexcept;

}  // namespace deepum::hooks
