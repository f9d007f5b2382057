// Graphs: their making by hand, instantiation, launches. What has the driver's arguments is
// generated (forwards.names).
#include <vector>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  return bind() == CUDA_SUCCESS && driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context
                                                                                      : nullptr;
}

// use(driver's parameters) unless the kernel is not known.
template <typename Parameters, typename Use>
cudaError_t with_kernel_node(const Parameters& from, Use use) {
  return with_kernel(from.func, [&](CUkernel kernel) {
    CUDA_KERNEL_NODE_PARAMS to{};
    to.kern = kernel;
    to.gridDimX = from.gridDim.x, to.gridDimY = from.gridDim.y, to.gridDimZ = from.gridDim.z;
    to.blockDimX = from.blockDim.x, to.blockDimY = from.blockDim.y, to.blockDimZ = from.blockDim.z;
    to.sharedMemBytes = from.sharedMemBytes;
    to.kernelParams = from.kernelParams;
    to.extra = from.extra;
    return use(&to);
  });
}

template <typename Use>
cudaError_t with_copy(const cudaMemcpy3DParms* copy, Use use) {
  CUDA_MEMCPY3D to{};
  if (copy == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  return as_driver_copy(*copy, &to) ? use(&to) : not_simulated("graph memcpy node of an array");
}

cudaMemcpy3DParms line(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  copy.dstPtr = {to, bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return copy;
}

// The parameters of any node in the driver's form; false: not simulated.
bool as_driver_node(const cudaGraphNodeParams& from, CUgraphNodeParams* to, cudaError_t* error) {
  *to = {};
  to->type = static_cast<CUgraphNodeType>(from.type);
  *error = cudaSuccess;
  switch (from.type) {
    case cudaGraphNodeTypeKernel:
      *error = with_kernel_node(from.kernel, [&](const CUDA_KERNEL_NODE_PARAMS* kernel) {
        // Versions 2 and 3 have the same fields.
        static_assert(sizeof *kernel == sizeof to->kernel);
        std::memcpy(&to->kernel, kernel, sizeof to->kernel);
        return cudaSuccess;
      });
      return true;
    case cudaGraphNodeTypeMemcpy:
      to->memcpy.flags = from.memcpy.flags;
      to->memcpy.copyCtx = current_context();
      return as_driver_copy(from.memcpy.copyParams, &to->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      // The driver's form has the same fields in front of its context. CUDA 13.1 and later have an
      // execution context there, which a program could only have from a call that is not simulated.
      constexpr std::size_t kCommon = offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx);
      static_assert(offsetof(cudaMemsetParamsV2, height) ==
                        offsetof(CUDA_MEMSET_NODE_PARAMS_v2, height) &&
                    kCommon <= sizeof(cudaMemsetParamsV2));
      std::memcpy(&to->memset, &from.memset, kCommon);
      to->memset.ctx = current_context();
      return true;
    }
    case cudaGraphNodeTypeHost:
      to->host.fn = from.host.fn;
      to->host.userData = from.host.userData;
      return true;
    case cudaGraphNodeTypeGraph:
      to->graph.graph = from.graph.graph;
      return true;
    case cudaGraphNodeTypeEmpty:
      return true;
    case cudaGraphNodeTypeWaitEvent:
      to->eventWait.event = from.eventWait.event;
      return true;
    case cudaGraphNodeTypeEventRecord:
      to->eventRecord.event = from.eventRecord.event;
      return true;
    default:
      return false;
  }
}

template <typename Use>
cudaError_t with_node(const cudaGraphNodeParams* parameters, Use use) {
  CUgraphNodeParams to;
  cudaError_t error = cudaSuccess;
  if (parameters == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  if (!as_driver_node(*parameters, &to, &error)) {
    return not_simulated("graph node of this type");
  }
  return error != cudaSuccess ? error : use(&to);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return call(&Driver::cuGraphCreate, graph, flags);
}
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  return call(&Driver::cuGraphDestroy, graph);
}
cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return call(&Driver::cuGraphClone, clone, original);
}
cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call(&Driver::cuGraphGetNodes, graph, nodes, count);
}
cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* type) {
  return call(&Driver::cuGraphNodeGetType, node, reinterpret_cast<CUgraphNodeType*>(type));
}
cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                   cudaGraphNode_t* dependencies,
                                                   cudaGraphEdgeData* edges, size_t* count) {
  return call(&Driver::cuGraphNodeGetDependencies, node, dependencies,
              reinterpret_cast<CUgraphEdgeData*>(edges), count);
}
cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                    unsigned long long flags) {
  return call(&Driver::cuGraphInstantiate, exec, graph, flags);
}
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call(&Driver::cuGraphLaunch, exec, stream);
}
cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return call(&Driver::cuGraphUpload, exec, stream);
}
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return call(&Driver::cuGraphExecDestroy, exec);
}
cudaError_t CUDARTAPI cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path,
                                             unsigned int flags) {
  return call(&Driver::cuGraphDebugDotPrint, graph, path, flags);
}

cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             const struct cudaKernelNodeParams* parameters) {
  return parameters == nullptr
             ? fail(cudaErrorInvalidValue)
             : with_kernel_node(*parameters, [&](const CUDA_KERNEL_NODE_PARAMS* p) {
                 return call(&Driver::cuGraphAddKernelNode, node, graph, dependencies, count, p);
               });
}
cudaError_t CUDARTAPI cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                   const struct cudaKernelNodeParams* parameters) {
  return parameters == nullptr
             ? fail(cudaErrorInvalidValue)
             : with_kernel_node(*parameters, [&](const CUDA_KERNEL_NODE_PARAMS* p) {
                 return call(&Driver::cuGraphKernelNodeSetParams, node, p);
               });
}
cudaError_t CUDARTAPI cudaGraphExecKernelNodeSetParams(
    cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams* parameters) {
  return parameters == nullptr
             ? fail(cudaErrorInvalidValue)
             : with_kernel_node(*parameters, [&](const CUDA_KERNEL_NODE_PARAMS* p) {
                 return call(&Driver::cuGraphExecKernelNodeSetParams, exec, node, p);
               });
}
cudaError_t CUDARTAPI cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                                   struct cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS p{};
  const cudaError_t error = call(&Driver::cuGraphKernelNodeGetParams, node, &p);
  if (error == cudaSuccess) {
    *parameters = {};
    parameters->func = function_of(p.kern != nullptr ? p.kern : reinterpret_cast<CUkernel>(p.func));
    parameters->gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ};
    parameters->blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ};
    parameters->sharedMemBytes = p.sharedMemBytes;
    parameters->kernelParams = p.kernelParams;
    parameters->extra = p.extra;
  }
  return error;
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             const struct cudaMemcpy3DParms* copy) {
  return with_copy(copy, [&](const CUDA_MEMCPY3D* c) {
    return call(&Driver::cuGraphAddMemcpyNode, node, graph, dependencies, count, c,
                current_context());
  });
}
cudaError_t CUDARTAPI cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                               const cudaGraphNode_t* dependencies, size_t count,
                                               void* to, const void* from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(to, from, bytes, kind);
  return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &copy);
}
cudaError_t CUDARTAPI cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                                   struct cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D c{};
  const cudaError_t error = call(&Driver::cuGraphMemcpyNodeGetParams, node, &c);
  if (error == cudaSuccess) {
    *copy = as_runtime_copy(c);
  }
  return error;
}
cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                                   const struct cudaMemcpy3DParms* copy) {
  return with_copy(copy, [&](const CUDA_MEMCPY3D* c) {
    return call(&Driver::cuGraphMemcpyNodeSetParams, node, c);
  });
}
cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to,
                                                     const void* from, size_t bytes,
                                                     enum cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(to, from, bytes, kind);
  return cudaGraphMemcpyNodeSetParams(node, &copy);
}
cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const struct cudaMemcpy3DParms* copy) {
  return with_copy(copy, [&](const CUDA_MEMCPY3D* c) {
    return call(&Driver::cuGraphExecMemcpyNodeSetParams, exec, node, c, current_context());
  });
}
cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         void* to, const void* from, size_t bytes,
                                                         enum cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(to, from, bytes, kind);
  return cudaGraphExecMemcpyNodeSetParams(exec, node, &copy);
}

// cudaMemsetParams and CUDA_MEMSET_NODE_PARAMS have one layout.
cudaError_t CUDARTAPI cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             const struct cudaMemsetParams* fill) {
  return forward(&Driver::cuGraphAddMemsetNode, node, graph, dependencies, count, fill,
                 current_context());
}
cudaError_t CUDARTAPI cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const struct cudaMemsetParams* fill) {
  return forward(&Driver::cuGraphExecMemsetNodeSetParams, exec, node, fill, current_context());
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies,
                                       const cudaGraphEdgeData* edges, size_t count,
                                       struct cudaGraphNodeParams* parameters) {
  return with_node(parameters, [&](CUgraphNodeParams* p) {
    return forward(&Driver::cuGraphAddNode, node, graph, dependencies, edges, count, p);
  });
}
cudaError_t CUDARTAPI cudaGraphNodeSetParams(cudaGraphNode_t node,
                                             struct cudaGraphNodeParams* parameters) {
  return with_node(parameters, [&](CUgraphNodeParams* p) {
    return call(&Driver::cuGraphNodeSetParams, node, p);
  });
}
cudaError_t CUDARTAPI cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 struct cudaGraphNodeParams* parameters) {
  return with_node(parameters, [&](CUgraphNodeParams* p) {
    return call(&Driver::cuGraphExecNodeSetParams, exec, node, p);
  });
}

}  // extern "C"
