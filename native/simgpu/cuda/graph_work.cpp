#include "graph_work.hpp"

#include "copy_call.hpp"
#include "graphs.hpp"
#include "not_simulated.hpp"

namespace deepum::simgpu {
namespace {

template <typename Parameters>
CUresult kernel_from(State& state, const Parameters& p, Work& out) {
  KernelWork work;
  CUfunction function = p.func;
  if constexpr (requires { p.kern; }) {
    if (function == nullptr) function = reinterpret_cast<CUfunction>(p.kern);
  }
  const CUresult error = make_launch(state, function, {p.gridDimX, p.gridDimY, p.gridDimZ},
                                     {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes,
                                     p.kernelParams, p.extra, work);
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
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
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

}  // namespace

CUresult work_from(State& state, const CUDA_KERNEL_NODE_PARAMS_v1& p, Work& out) {
  return kernel_from(state, p, out);
}
CUresult work_from(State& state, const CUDA_KERNEL_NODE_PARAMS_v2& p, Work& out) {
  return kernel_from(state, p, out);
}
CUresult work_from(State&, const CUDA_MEMCPY3D& p, Work& out) { return copy_from(p, out); }
CUresult work_from(State&, const CUDA_MEMSET_NODE_PARAMS& p, Work& out) {
  return fill_from(p, out);
}
CUresult work_from(State&, const CUDA_HOST_NODE_PARAMS& p, Work& out) { return host_from(p, out); }

CUresult work_from(State& state, CUgraph child, Work& out) {
  if (!alive(state.graphs, child)) return CUDA_ERROR_INVALID_VALUE;
  const CUgraph copy = clone_graph(state, child);
  copy->child = true;
  out = ChildWork{copy};
  return CUDA_SUCCESS;
}

CUresult work_from(State& state, const CUgraphNodeParams& p, Work& out) {
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
      return work_from(state, p.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      out = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      out = RecordWork{p.eventRecord.event};
      return alive(state.events, p.eventRecord.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      out = WaitWork{p.eventWait.event};
      return alive(state.events, p.eventWait.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return not_simulated("graph node of this type");
  }
}

}  // namespace deepum::simgpu
