// Graphs, and the capture of streams into them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "operation.hpp"
#include "streams.hpp"

struct CUgraphNode_st {
  CUgraph graph = nullptr;
  deepum::simgpu::Work work;
  std::vector<CUgraphNode> dependencies;
  bool enabled = true;
  CUgraphNode origin = nullptr;   // in a clone: the node it was made from
  std::vector<void*> parameters;  // of a kernel node: where cuGraphKernelNodeGetParams points
};

struct CUgraph_st {
  // In order of creation; a dependency may be added against it.
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  int device = 0;
  bool child = false;  // owned by a node of another graph
  // References to the program's objects that live as long as the graph.
  std::map<CUuserObject, unsigned> objects;
  ~CUgraph_st();
};

namespace deepum::simgpu {

struct Capture {
  CUgraph graph = nullptr;
  bool owns_graph = true;  // not one that the program gave (cuStreamBeginCaptureToGraph)
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const Thread* thread = nullptr;
  std::uint64_t id = 0;
  bool invalid = false;
  std::vector<CUgraphNode> left_behind;  // last nodes of streams that were destroyed meanwhile
};

// Calls that a capture forbids. Each returns CUDA_SUCCESS, or the error after having spoilt the
// capture it would have disturbed. Unsafe calls: allocation, device synchronisation (thread's
// capture mode).
CUresult refuse_in_capture(Call& call);
// On a capturing stream: query, synchronise, prefetch, discard.
CUresult refuse_on_stream(Call& call, CUstream stream);
// Query or synchronise an event that stands for captured work.
CUresult refuse_event(Call& call, CUevent event);
// The default stream while a blocking stream captures.
CUresult refuse_implicit(Call& call, CUstream stream);

CUresult capture_work(Call& call, CUstream stream, Work work);
CUresult capture_record(Call& call, CUstream stream, CUevent event, unsigned flags);
CUresult capture_wait(Call& call, CUstream stream, CUevent event);
void abandon_capture(State& state, CUstream stream);  // the stream goes away

CUgraphNode add_node(CUgraph graph, Work work, std::vector<CUgraphNode> dependencies);
// Graphs' references to user objects (user_object.cpp). When the last reference is given back, the
// graphs' or the program's, the object is destroyed, on the pump's thread.
void retain_object(CUuserObject object, unsigned count);
void release_object(State& state, CUuserObject object, unsigned count);

CUgraph clone_graph(State& state, CUgraph graph);
void destroy_graph(State& state, CUgraph graph);

}  // namespace deepum::simgpu
