// Copies to and from registered variables: the copy functions, given the variable's address.
#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

// use(the address of the variable's byte `offset`), or the error.
template <typename Use>
cudaError_t with_symbol(const void* symbol, size_t offset, Use use) {
  void* start = nullptr;
  const cudaError_t error = cudaGetSymbolAddress(&start, symbol);
  return error != cudaSuccess ? error : use(static_cast<char*>(start) + offset);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                         size_t offset, enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) { return cudaMemcpy(at, from, bytes, kind); });
}
cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) { return cudaMemcpy(to, at, bytes, kind); });
}
cudaError_t CUDARTAPI cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                              size_t offset, enum cudaMemcpyKind kind,
                                              cudaStream_t stream) {
  return with_symbol(symbol, offset,
                     [&](void* at) { return cudaMemcpyAsync(at, from, bytes, kind, stream); });
}
cudaError_t CUDARTAPI cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes,
                                                size_t offset, enum cudaMemcpyKind kind,
                                                cudaStream_t stream) {
  return with_symbol(symbol, offset,
                     [&](void* at) { return cudaMemcpyAsync(to, at, bytes, kind, stream); });
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies,
                                                     size_t dependency_count, const void* symbol,
                                                     const void* from, size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphAddMemcpyNode1D(node, graph, dependencies, dependency_count, at, from, bytes,
                                    kind);
  });
}
cudaError_t CUDARTAPI cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                                       const cudaGraphNode_t* dependencies,
                                                       size_t dependency_count, void* to,
                                                       const void* symbol, size_t bytes,
                                                       size_t offset, enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphAddMemcpyNode1D(node, graph, dependencies, dependency_count, to, at, bytes,
                                    kind);
  });
}
cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                           const void* from, size_t bytes,
                                                           size_t offset,
                                                           enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphMemcpyNodeSetParams1D(node, at, from, bytes, kind);
  });
}
cudaError_t CUDARTAPI cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                             const void* symbol, size_t bytes,
                                                             size_t offset,
                                                             enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphMemcpyNodeSetParams1D(node, to, at, bytes, kind);
  });
}
cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec,
                                                               cudaGraphNode_t node,
                                                               const void* symbol, const void* from,
                                                               size_t bytes, size_t offset,
                                                               enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphExecMemcpyNodeSetParams1D(exec, node, at, from, bytes, kind);
  });
}
cudaError_t CUDARTAPI cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec,
                                                                 cudaGraphNode_t node, void* to,
                                                                 const void* symbol, size_t bytes,
                                                                 size_t offset,
                                                                 enum cudaMemcpyKind kind) {
  return with_symbol(symbol, offset, [&](void* at) {
    return cudaGraphExecMemcpyNodeSetParams1D(exec, node, to, at, bytes, kind);
  });
}

}  // extern "C"
