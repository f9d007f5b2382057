// Adding nodes to graphs, reading and changing what they do.
#include <functional>

#include "graph_exec.hpp"
#include "graph_work.hpp"

using namespace deepum::simgpu;

namespace {

using Make = std::function<CUresult(State&, Work&)>;

CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
             const Make& make) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (out == nullptr || !alive(call.state().graphs, graph) ||
      (count > 0 && dependencies == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const std::vector<CUgraphNode> before(dependencies, dependencies + count);
  for (const CUgraphNode node : before) {
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
  }
  Work work;
  if (const CUresult error = make(call.state(), work); error != CUDA_SUCCESS) return error;
  *out = add_node(graph, std::move(work), before);
  return CUDA_SUCCESS;
}

// Gives a node new work of the same kind; in an instantiated graph the node that was made from it.
CUresult change(CUgraphExec exec, CUgraphNode node, const Make& make) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  State& state = call.state();
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (exec != nullptr) {
    if (!alive(state.graph_execs, exec)) return CUDA_ERROR_INVALID_VALUE;
    node = twin_of(exec, node);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  Work work;
  if (const CUresult error = make(state, work); error != CUDA_SUCCESS) return error;
  // In an instantiated graph a child may change what its nodes do, not which there are.
  const auto* const before = std::get_if<ChildWork>(&node->work);
  const auto* const after = std::get_if<ChildWork>(&work);
  const bool fits = work.index() == node->work.index() && (exec == nullptr || before == nullptr ||
                                                           same_shape(before->graph, after->graph));
  if (fits) std::swap(node->work, work);
  if (const auto* const child = std::get_if<ChildWork>(&work)) destroy_graph(state, child->graph);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The same from a structure of the API.
template <typename Parameters>
CUresult add_from(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                  std::size_t count, const Parameters* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, dependencies, count,
             [&](State& state, Work& work) { return work_from(state, *p, work); });
}

template <typename Parameters>
CUresult change_from(CUgraphNode node, const Parameters* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, node,
                [&](State& state, Work& work) { return work_from(state, *p, work); });
}

template <typename Parameters>
CUresult change_from(CUgraphExec exec, CUgraphNode node, const Parameters* p) {
  if (p == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(exec, node, [&](State& state, Work& work) { return work_from(state, *p, work); });
}

// Recording an event, or waiting for one.
template <typename EventWork>
Make of_event(CUevent event) {
  return [event](State& state, Work& work) {
    if (!alive(state.events, event)) return CUDA_ERROR_INVALID_VALUE;
    work = EventWork{event};
    return CUDA_SUCCESS;
  };
}

template <typename Wanted>
CUresult read(CUgraphNode node, const std::function<void(State&, Wanted&)>& answer) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  Wanted* const work = node != nullptr ? std::get_if<Wanted>(&node->work) : nullptr;
  if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
  answer(call.state(), *work);
  return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult read_kernel(CUgraphNode node, Parameters* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<KernelWork>(node, [&](State&, KernelWork& work) {
    node->parameters.clear();
    if (work.function->layout) {
      for (const Parameter& parameter : work.function->layout->parameters)
        node->parameters.push_back(work.parameters.data() + parameter.offset);
    }
    *p = {};
    p->func = work.function;
    p->gridDimX = work.grid[0], p->gridDimY = work.grid[1], p->gridDimZ = work.grid[2];
    p->blockDimX = work.block[0], p->blockDimY = work.block[1], p->blockDimZ = work.block[2];
    p->sharedMemBytes = work.shared_bytes;
    p->kernelParams = node->parameters.empty() ? nullptr : node->parameters.data();
  });
}

}  // namespace

namespace deepum::simgpu {

CUgraphNode twin_of(CUgraphExec exec, CUgraphNode node) {
  for (const auto& candidate : exec->graph->nodes) {
    if (candidate->origin == node) return candidate.get();
  }
  return nullptr;
}

}  // namespace deepum::simgpu

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return read_kernel(hNode, nodeParams);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return read_kernel(hNode, nodeParams);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return change_from(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return change_from(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, copyParams);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<CopyWork>(hNode, [&](State& state, CopyWork& work) {
    const auto on_gpu = [&](std::uint64_t address) {
      const Allocation* const allocation = state.memory.find(address);
      return allocation != nullptr && allocation->on_gpu();
    };
    *nodeParams = {};
    nodeParams->dstMemoryType =
        on_gpu(work.destination) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    nodeParams->srcMemoryType = on_gpu(work.source) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    nodeParams->dstDevice = work.destination;
    nodeParams->srcDevice = work.source;
    nodeParams->dstHost = reinterpret_cast<void*>(work.destination);
    nodeParams->srcHost = reinterpret_cast<const void*>(work.source);
    nodeParams->WidthInBytes = work.width;
    nodeParams->Height = work.height;
    nodeParams->Depth = work.depth;
    nodeParams->dstPitch = work.destination_pitch != 0 ? work.destination_pitch : work.width;
    nodeParams->srcPitch = work.source_pitch != 0 ? work.source_pitch : work.width;
    nodeParams->dstHeight =
        work.destination_slice != 0 ? work.destination_slice / nodeParams->dstPitch : work.height;
    nodeParams->srcHeight =
        work.source_slice != 0 ? work.source_slice / nodeParams->srcPitch : work.height;
  });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext) {
  return change_from(hGraphExec, hNode, copyParams);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, memsetParams);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<FillWork>(hNode, [&](State&, FillWork& work) {
    *nodeParams = {work.destination, work.pitch, work.value, work.element, work.width, work.height};
  });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext) {
  return change_from(hGraphExec, hNode, memsetParams);
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                            const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<HostWork>(
      hNode, [&](State&, HostWork& work) { *nodeParams = {work.host_function, work.data}; });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return change_from(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                             const CUgraphNode* dependencies, size_t numDependencies) {
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [](State&, Work& work) { return work = EmptyWork{}, CUDA_SUCCESS; });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State& state, Work& work) { return work_from(state, childGraph, work); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraph childGraph) {
  if (hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode,
                [&](State& state, Work& work) { return work_from(state, childGraph, work); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<ChildWork>(hNode, [&](State&, ChildWork& work) { *phGraph = work.graph; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                   const CUgraphNode* dependencies, size_t numDependencies,
                                   CUevent event) {
  return add(phGraphNode, hGraph, dependencies, numDependencies, of_event<RecordWork>(event));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 CUevent event) {
  return add(phGraphNode, hGraph, dependencies, numDependencies, of_event<WaitWork>(event));
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return change(nullptr, hNode, of_event<RecordWork>(event));
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return change(nullptr, hNode, of_event<WaitWork>(event));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUevent event) {
  if (hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, of_event<RecordWork>(event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUevent event) {
  if (hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, of_event<WaitWork>(event));
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  if (event_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<RecordWork>(hNode, [&](State&, RecordWork& work) { *event_out = work.event; });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  if (event_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<WaitWork>(hNode, [&](State&, WaitWork& work) { *event_out = work.event; });
}

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData*,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return add_from(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return change_from(hNode, nodeParams);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams) {
  return change_from(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraphNode node =
      alive(call.state().graph_execs, hGraphExec) ? twin_of(hGraphExec, hNode) : nullptr;
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = isEnabled != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraphNode node =
      alive(call.state().graph_execs, hGraphExec) ? twin_of(hGraphExec, hNode) : nullptr;
  if (node == nullptr || isEnabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *isEnabled = node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}
