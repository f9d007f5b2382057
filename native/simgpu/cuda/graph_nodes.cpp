// Adding nodes to graphs, reading and changing what they do.
#include <cstring>

#include "copy_call.hpp"
#include "graph_exec.hpp"
#include "not_simulated.hpp"

using namespace deepum::simgpu;

namespace {

// Each structure of the API to the work it stands for.
template <typename Parameters>
CUresult kernel_from(State& state, const Parameters& p, Work& out) {
  KernelWork work;
  CUfunction function = p.func;
  if constexpr (requires { p.kern; }) {
    if (function == nullptr) function = reinterpret_cast<CUfunction>(p.kern);
  }
  const CUresult error = make_launch(state, function, {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ},
                                     p.sharedMemBytes, p.kernelParams, p.extra, work);
  out = std::move(work);
  return error;
}

CUresult copy_from(const CUDA_MEMCPY3D& p, Work& out) {
  CopyWork work;
  Side destination{}, source{};
  const CUresult error = box_of(p, "graph memcpy node of an array", work, destination, source);
  out = std::move(work);
  return error;
}

template <typename Parameters>
CUresult fill_from(const Parameters& p, Work& out) {
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  out = FillWork{p.dst, p.width, p.height, p.pitch, p.value, p.elementSize};
  return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult host_from(const Parameters& p, Work& out) {
  if (p.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUhostFn function = p.fn;
  void* const data = p.userData;
  out = HostWork{[function, data] { function(data); }, function, data};
  return CUDA_SUCCESS;
}

CUresult child_from(State& state, CUgraph graph, Work& out) {
  if (!alive(state.graphs, graph)) return CUDA_ERROR_INVALID_VALUE;
  const CUgraph copy = clone_graph(state, graph);
  copy->child = true;
  out = ChildWork{copy};
  return CUDA_SUCCESS;
}

CUresult any_from(State& state, const CUgraphNodeParams& p, Work& out) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel_from(state, p.kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_from(p.memcpy.copyParams, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill_from(p.memset, out);
    case CU_GRAPH_NODE_TYPE_HOST:
      return host_from(p.host, out);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return child_from(state, p.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      out = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      out = RecordWork{p.eventRecord.event};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      out = WaitWork{p.eventWait.event};
      return CUDA_SUCCESS;
    default:
      return not_simulated("graph node of this type");
  }
}

using Make = std::function<CUresult(State&, Work&)>;

CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, const Make& make) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (out == nullptr || !alive(call.state().graphs, graph) || (count > 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
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
  Call call(Need::initialised, Role::neutral);
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
  if (work.index() != node->work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (const auto* const child = std::get_if<ChildWork>(&node->work)) destroy_graph(state, child->graph);
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

template <typename Wanted>
CUresult read(CUgraphNode node, const std::function<void(State&, Wanted&)>& answer) {
  Call call(Need::initialised, Role::neutral);
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

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) { return read_kernel(hNode, nodeParams); }
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) { return read_kernel(hNode, nodeParams); }

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (nodeParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State& state, Work& work) { return kernel_from(state, *nodeParams, work); });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies, [&](State&, Work& work) { return copy_from(*copyParams, work); });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<CopyWork>(hNode, [&](State& state, CopyWork& work) {
    const auto on_gpu = [&](std::uint64_t address) {
      const Allocation* const allocation = state.memory.find(address);
      return allocation != nullptr && allocation->on_gpu();
    };
    *nodeParams = {};
    nodeParams->dstMemoryType = on_gpu(work.destination) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
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
    nodeParams->dstHeight = work.destination_slice != 0 ? work.destination_slice / nodeParams->dstPitch : work.height;
    nodeParams->srcHeight = work.source_slice != 0 ? work.source_slice / nodeParams->srcPitch : work.height;
  });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State&, Work& work) { return copy_from(*nodeParams, work); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (copyParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State&, Work& work) { return copy_from(*copyParams, work); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext) {
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies, [&](State&, Work& work) { return fill_from(*memsetParams, work); });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<FillWork>(hNode, [&](State&, FillWork& work) {
    *nodeParams = {work.destination, work.pitch, work.value, work.element, work.width, work.height};
  });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State&, Work& work) { return fill_from(*nodeParams, work); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext) {
  if (memsetParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State&, Work& work) { return fill_from(*memsetParams, work); });
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies, [&](State&, Work& work) { return host_from(*nodeParams, work); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<HostWork>(hNode, [&](State&, HostWork& work) { *nodeParams = {work.host_function, work.data}; });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State&, Work& work) { return host_from(*nodeParams, work); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State&, Work& work) { return host_from(*nodeParams, work); });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies) {
  return add(phGraphNode, hGraph, dependencies, numDependencies, [](State&, Work& work) { return work = EmptyWork{}, CUDA_SUCCESS; });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State& state, Work& work) { return child_from(state, childGraph, work); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<ChildWork>(hNode, [&](State&, ChildWork& work) { *phGraph = work.graph; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                                   CUevent event) {
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State&, Work& work) { return work = RecordWork{event}, CUDA_SUCCESS; });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                                 CUevent event) {
  return add(phGraphNode, hGraph, dependencies, numDependencies, [&](State&, Work& work) { return work = WaitWork{event}, CUDA_SUCCESS; });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  if (event_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<RecordWork>(hNode, [&](State&, RecordWork& work) { *event_out = work.event; });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  if (event_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return read<WaitWork>(hNode, [&](State&, WaitWork& work) { *event_out = work.event; });
}

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             [&](State& state, Work& work) { return any_from(state, *nodeParams, work); });
}

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
                        CUgraphNodeParams* nodeParams) {
  return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(nullptr, hNode, [&](State& state, Work& work) { return any_from(state, *nodeParams, work); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr || hGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(hGraphExec, hNode, [&](State& state, Work& work) { return any_from(state, *nodeParams, work); });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraphNode node = alive(call.state().graph_execs, hGraphExec) ? twin_of(hGraphExec, hNode) : nullptr;
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = isEnabled != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUgraphNode node = alive(call.state().graph_execs, hGraphExec) ? twin_of(hGraphExec, hNode) : nullptr;
  if (node == nullptr || isEnabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *isEnabled = node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}
