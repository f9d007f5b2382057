// Running graphs.
#pragma once

#include "graphs.hpp"

struct CUgraphExec_st {
  CUgraph graph = nullptr;  // a copy of its own
};

namespace deepum::simgpu {

// Hands the nodes to the engine so that each starts after its dependencies; branches run side by
// side on streams of their own, and `stream` goes on when all are done. Waits for itself: what is
// in the graph is held by the engine until it has run.
void enqueue_graph(State& state, um_model::Host host, um_model::Stream stream, int device,
                   CUgraph graph);

// Do the graphs' nodes stand for the same kinds of work with the same edges? Then one may take the
// other's place.
bool same_shape(CUgraph a, CUgraph b);

// The node of the instantiated graph that was made from `node`; nullptr: none.
CUgraphNode twin_of(CUgraphExec exec, CUgraphNode node);

}  // namespace deepum::simgpu
