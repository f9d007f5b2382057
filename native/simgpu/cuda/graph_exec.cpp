// Instantiating and launching graphs.
#include "graph_exec.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace deepum::simgpu;

namespace deepum::simgpu {
namespace {

// Dependencies first, else in order of creation. Empty for a graph with a cycle.
std::vector<CUgraphNode> in_order(CUgraph graph) {
  std::vector<CUgraphNode> order;
  std::set<CUgraphNode> placed;
  while (order.size() < graph->nodes.size()) {
    const std::size_t before = order.size();
    for (const auto& node : graph->nodes) {
      if (placed.contains(node.get())) continue;
      if (!std::all_of(node->dependencies.begin(), node->dependencies.end(),
                       [&](CUgraphNode d) { return placed.contains(d); }))
        continue;
      placed.insert(node.get());
      order.push_back(node.get());
    }
    if (order.size() == before) return {};
  }
  return order;
}

}  // namespace

void enqueue_graph(State& state, um_model::Host host, um_model::Stream stream, int device,
                   CUgraph graph) {
  um_model::Engine& engine = state.engine;
  struct Place {
    um_model::Stream stream;
    um_model::Event event;
    bool recorded = false;
  };
  std::map<CUgraphNode, Place> places;
  std::map<um_model::Stream, CUgraphNode> last;  // the node a stream ends with
  std::map<CUgraphNode, int> dependents;
  for (const auto& node : graph->nodes) {
    for (const CUgraphNode dependency : node->dependencies) ++dependents[dependency];
  }
  std::vector<um_model::Stream> branches;
  std::vector<um_model::Event> events;
  std::optional<um_model::Event> start;
  bool own_taken = false;
  const std::vector<CUgraphNode> order = in_order(graph);
  if (std::count_if(order.begin(), order.end(),
                    [](CUgraphNode node) { return node->dependencies.empty(); }) > 1) {
    start = events.emplace_back(engine.add_event());
    engine.record(host, *start, stream);
  }
  for (const CUgraphNode node : order) {
    Place place{stream, 0};
    const auto continued = std::find_if(
        node->dependencies.begin(), node->dependencies.end(),
        [&](CUgraphNode dependency) { return last[places.at(dependency).stream] == dependency; });
    if (continued != node->dependencies.end()) {
      place.stream = places.at(*continued).stream;
    } else if (node->dependencies.empty() && !own_taken) {
      own_taken = true;
    } else {
      place.stream = branches.emplace_back(engine.add_stream(device));
      if (node->dependencies.empty() && start) engine.wait(host, place.stream, *start);
    }
    for (const CUgraphNode dependency : node->dependencies) {
      const Place& before = places.at(dependency);
      if (before.stream != place.stream) engine.wait(host, place.stream, before.event);
    }
    if (node->enabled) enqueue(state, host, place.stream, device, node->work, true);
    last[place.stream] = node;
    // Somebody on another stream, or the launching stream at the end, may have to wait for it.
    const int followers = dependents[node];
    if (followers != 1 || place.stream != stream) {
      place.event = events.emplace_back(engine.add_event());
      place.recorded = true;
      engine.record(host, place.event, place.stream);
    } else {
      const auto follower = std::find_if(order.begin(), order.end(), [&](CUgraphNode other) {
        return std::find(other->dependencies.begin(), other->dependencies.end(), node) !=
               other->dependencies.end();
      });
      if (follower != order.end() && (*follower)->dependencies.size() > 1) {
        place.event = events.emplace_back(engine.add_event());
        place.recorded = true;
        engine.record(host, place.event, place.stream);
      }
    }
    places.emplace(node, place);
  }
  for (const auto& [branch, node] : last) {
    if (branch != stream) engine.wait(host, stream, places.at(node).event);
  }
  for (const um_model::Stream branch : branches) engine.remove_stream(branch);
  for (const um_model::Event event : events) engine.remove_event(event);
}

bool same_shape(CUgraph a, CUgraph b) {
  if (a->nodes.size() != b->nodes.size()) return false;
  std::map<CUgraphNode, std::size_t> at_a, at_b;
  for (std::size_t i = 0; i < a->nodes.size(); ++i) {
    at_a[a->nodes[i].get()] = i;
    at_b[b->nodes[i].get()] = i;
  }
  for (std::size_t i = 0; i < a->nodes.size(); ++i) {
    const CUgraphNode_st &x = *a->nodes[i], &y = *b->nodes[i];
    if (x.work.index() != y.work.index() || x.dependencies.size() != y.dependencies.size())
      return false;
    for (std::size_t d = 0; d < x.dependencies.size(); ++d) {
      if (at_a[x.dependencies[d]] != at_b[y.dependencies[d]]) return false;
    }
  }
  return true;
}

}  // namespace deepum::simgpu

namespace {

// What a launch under way needs of the program's objects lives until it is done, also when the
// graph is destroyed meanwhile.
void hold_objects(State& state, um_model::Host host, um_model::Stream stream, CUgraph graph) {
  for (const auto& node : graph->nodes) {
    if (const auto* const child = std::get_if<ChildWork>(&node->work))
      hold_objects(state, host, stream, child->graph);
  }
  if (graph->objects.empty()) return;
  std::vector<CUuserObject> held;
  for (const auto& [object, count] : graph->objects) {
    retain_object(object, 1);
    held.push_back(object);
  }
  // Not a host function: that would cost the stream time.
  state.engine.wait_until(host, stream, [&state, held] {
    for (const CUuserObject object : held) release_object(state, object, 1);
    return true;
  });
}

CUresult instantiate(CUgraphExec* out, CUgraph graph) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  State& state = call.state();
  if (out == nullptr || !alive(state.graphs, graph)) return CUDA_ERROR_INVALID_VALUE;
  if (!graph->nodes.empty() && in_order(graph).empty()) return CUDA_ERROR_INVALID_VALUE;
  auto* const made = new CUgraphExec_st{clone_graph(state, graph)};
  made->graph->child = true;
  state.graph_execs.insert(made);
  *out = made;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long) {
  return instantiate(phGraphExec, hGraph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = instantiate(phGraphExec, hGraph);
  instantiateParams->hErrNode_out = nullptr;
  instantiateParams->result_out =
      error == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return error;
}

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
  if (phErrorNode != nullptr) *phErrorNode = nullptr;
  if (logBuffer != nullptr && bufferSize > 0) *logBuffer = '\0';
  return instantiate(phGraphExec, hGraph);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  return cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graph_execs, hGraphExec)) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(call.state(), hGraphExec->graph);  // what was launched is with the engine
  call.state().graph_execs.erase(hGraphExec);
  delete hGraphExec;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (flags == nullptr || !alive(call.state().graph_execs, hGraphExec))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  if (!alive(call.state().graph_execs, hGraphExec)) return CUDA_ERROR_INVALID_VALUE;
  return resolve_stream(call, hStream) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  if (!alive(state.graph_execs, hGraphExec)) return CUDA_ERROR_INVALID_VALUE;
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) {
    ChildWork child{clone_graph(state, hGraphExec->graph)};
    child.graph->child = true;
    return capture_work(call, stream, child);
  }
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  call.engine().spend(call.host(), state.machine.launch_ns);
  const um_model::Stream id = enter(call, stream);
  enqueue_graph(state, call.host(), id, stream->context->device, hGraphExec->graph);
  hold_objects(state, call.host(), id, hGraphExec->graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  State& state = call.state();
  if (!alive(state.graph_execs, hGraphExec) || !alive(state.graphs, hGraph) ||
      resultInfo == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *resultInfo = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  if (!same_shape(hGraphExec->graph, hGraph)) {
    resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  destroy_graph(state, hGraphExec->graph);
  hGraphExec->graph = clone_graph(state, hGraph);
  hGraphExec->graph->child = true;
  return CUDA_SUCCESS;
}
