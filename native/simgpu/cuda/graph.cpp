// Graphs as data: nodes, edges, copies.
#include <algorithm>
#include <map>

#include "graphs.hpp"

namespace deepum::simgpu {

CUgraphNode add_node(CUgraph graph, Work work, std::vector<CUgraphNode> dependencies) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->graph = graph;
  node->work = std::move(work);
  node->dependencies = std::move(dependencies);
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

CUgraph clone_graph(State& state, CUgraph graph) {
  auto* const copy = new CUgraph_st;
  copy->device = graph->device;
  std::map<CUgraphNode, CUgraphNode> made;
  for (const auto& node : graph->nodes) {
    const CUgraphNode twin = add_node(copy, node->work, {});
    twin->enabled = node->enabled;
    twin->origin = node.get();
    if (auto* const child = std::get_if<ChildWork>(&twin->work)) {
      child->graph = clone_graph(state, child->graph);
      child->graph->child = true;
    }
    made.emplace(node.get(), twin);
  }
  for (const auto& node : graph->nodes) {
    for (const CUgraphNode dependency : node->dependencies)
      made[node.get()]->dependencies.push_back(made[dependency]);
  }
  for (const auto& [object, count] : graph->objects) {
    copy->objects.emplace(object, count);
    retain_object(object, count);
  }
  state.graphs.insert(copy);
  return copy;
}

void destroy_graph(State& state, CUgraph graph) {
  for (const auto& node : graph->nodes) {
    if (const auto* const child = std::get_if<ChildWork>(&node->work))
      destroy_graph(state, child->graph);
  }
  for (const auto& [object, count] : graph->objects) release_object(state, object, count);
  state.graphs.erase(graph);
  delete graph;
}

}  // namespace deepum::simgpu

CUgraph_st::~CUgraph_st() = default;

using namespace deepum::simgpu;

namespace {

bool owns(CUgraph graph, CUgraphNode node) {
  return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                     [&](const auto& other) { return other.get() == node; });
}

// The node's graph if the node is alive; a node handle says nothing by itself.
CUgraph graph_of(State& state, CUgraphNode node) {
  for (const void* const pointer : state.graphs) {
    const auto graph = static_cast<CUgraph>(const_cast<void*>(pointer));
    if (owns(graph, node)) return graph;
  }
  return nullptr;
}

// Two-step answers: how many there are when there is no array, else as many as fit.
CUresult list_nodes(const std::vector<CUgraphNode>& found, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

std::vector<CUgraphNode> dependents_of(CUgraph graph, CUgraphNode node) {
  std::vector<CUgraphNode> found;
  for (const auto& other : graph->nodes) {
    if (std::find(other->dependencies.begin(), other->dependencies.end(), node) !=
        other->dependencies.end())
      found.push_back(other.get());
  }
  return found;
}

void zero_edges(CUgraphEdgeData* edges, const size_t* count) {
  if (edges != nullptr && count != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
}

}  // namespace

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = new CUgraph_st;
  const CUcontext context = current_context();
  (*phGraph)->device = context != nullptr ? context->device : 0;
  call.state().graphs.insert(*phGraph);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph) || hGraph->child) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(call.state(), hGraph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (phGraphClone == nullptr || !alive(call.state().graphs, originalGraph))
    return CUDA_ERROR_INVALID_VALUE;
  *phGraphClone = clone_graph(call.state(), originalGraph);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                CUgraph hClonedGraph) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (phNode == nullptr || !alive(call.state().graphs, hClonedGraph))
    return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : hClonedGraph->nodes) {
    if (node->origin != hOriginalNode) continue;
    *phNode = node.get();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> all;
  all.reserve(hGraph->nodes.size());
  for (const auto& node : hGraph->nodes) all.push_back(node.get());
  return list_nodes(all, nodes, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> roots;
  for (const auto& node : hGraph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return list_nodes(roots, rootNodes, numRootNodes);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph) || numEdges == nullptr ||
      (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> sources, targets;
  for (const auto& node : hGraph->nodes) {
    for (const CUgraphNode dependency : node->dependencies) {
      sources.push_back(dependency);
      targets.push_back(node.get());
    }
  }
  size_t room = *numEdges;
  list_nodes(sources, from, &room);
  list_nodes(targets, to, numEdges);
  if (from != nullptr) zero_edges(edgeData, numEdges);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return cuGraphGetEdges_v2(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edgeData, size_t* numDependencies) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (graph_of(call.state(), hNode) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = list_nodes(hNode->dependencies, dependencies, numDependencies);
  if (dependencies != nullptr) zero_edges(edgeData, numDependencies);
  return error;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies,
                                    size_t* numDependencies) {
  return cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                         CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraph graph = graph_of(call.state(), hNode);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = list_nodes(dependents_of(graph, hNode), dependentNodes, numDependentNodes);
  if (dependentNodes != nullptr) zero_edges(edgeData, numDependentNodes);
  return error;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                      size_t* numDependentNodes) {
  return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t numDependencies) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph) ||
      (numDependencies > 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numDependencies; ++i) {
    if (from[i] == to[i] || !owns(hGraph, from[i]) || !owns(hGraph, to[i]))
      return CUDA_ERROR_INVALID_VALUE;
    auto& dependencies = to[i]->dependencies;
    if (std::find(dependencies.begin(), dependencies.end(), from[i]) != dependencies.end())
      return CUDA_ERROR_INVALID_VALUE;
    dependencies.push_back(from[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
  return cuGraphAddDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData*,
                                      size_t numDependencies) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph) ||
      (numDependencies > 0 && (from == nullptr || to == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numDependencies; ++i) {
    if (!owns(hGraph, to[i]) || std::erase(to[i]->dependencies, from[i]) == 0)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return cuGraphRemoveDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraph graph = graph_of(call.state(), hNode);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : graph->nodes) std::erase(node->dependencies, hNode);
  if (const auto* const child = std::get_if<ChildWork>(&hNode->work))
    destroy_graph(call.state(), child->graph);
  std::erase_if(graph->nodes, [&](const auto& node) { return node.get() == hNode; });
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (type == nullptr || graph_of(call.state(), hNode) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  struct Kind {
    CUgraphNodeType operator()(const EmptyWork&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelWork&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyWork&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const FillWork&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const ValueWork&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const RecordWork&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const WaitWork&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ChildWork&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
  };
  *type = std::visit(Kind{}, hNode->work);
  return CUDA_SUCCESS;
}
