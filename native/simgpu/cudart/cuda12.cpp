// What libcudart.so.12 alone has: the forms that CUDA 13 dropped or gave up for those of
// changed.names. Signatures: cuda_runtime_api.h of CUDA 12.9.
#include <cstdint>

#include "cuda12_layouts.hpp"
#include "device_properties.hpp"

// From here on the names stand for CUDA 12's own forms.
#include "changed_undefine.inc"

using namespace deepum::simgpu::cudart;

const Major deepum::simgpu::cudart::kMajor{12090, cuda12::kPointerAttributesBytes};

namespace {

// Before locations: a device's ordinal, or cudaCpuDeviceId for the host.
cudaMemLocation place(int device) {
  return device == cudaCpuDeviceId ? cudaMemLocation{cudaMemLocationTypeHost, 0}
                                   : cudaMemLocation{cudaMemLocationTypeDevice, device};
}

// Forms without edge data are CUDA_ERROR_LOSSY_QUERY where an edge has some, which the driver
// decides: those with it, asked without.
constexpr const cudaGraphEdgeData* kNoEdges = nullptr;

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceProperties_v2(struct cudaDeviceProp* properties, int device) {
  auto* const p = reinterpret_cast<cuda12::DeviceProp*>(properties);
  const cudaError_t error = get_properties(p, device);
  if (error == cudaSuccess) {
    p->clockRate = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    p->deviceOverlap = attribute(device, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
    p->kernelExecTimeoutEnabled = attribute(device, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
    p->computeMode = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
    p->memoryClockRate = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    p->singleToDoublePrecisionPerfRatio =
        attribute(device, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  }
  return error;
}
// CUDA 11's structure ends behind reservedSharedMemPerBlock, and begins as CUDA 12's.
cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return fail(cudaErrorInvalidValue);
  cuda12::DeviceProp all;
  const cudaError_t error =
      cudaGetDeviceProperties_v2(reinterpret_cast<cudaDeviceProp*>(&all), device);
  if (error == cudaSuccess) {
    std::memcpy(static_cast<void*>(properties), &all,
                offsetof(cuda12::DeviceProp, hostRegisterSupported));
  }
  return error;
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void* memory, size_t bytes, int device,
                                           cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(memory, bytes, place(device), 0, stream);
}
cudaError_t CUDARTAPI cudaMemAdvise(const void* memory, size_t bytes, enum cudaMemoryAdvise advice,
                                    int device) {
  return cudaMemAdvise_v2(memory, bytes, advice, place(device));
}
cudaError_t CUDARTAPI cudaMemcpyBatchAsync(void** to, void** from, size_t* bytes, size_t count,
                                           struct cudaMemcpyAttributes* attributes,
                                           size_t* attribute_indices, size_t attribute_count,
                                           size_t* failed, cudaStream_t stream) {
  const cudaError_t error = forward(&Driver::cuMemcpyBatchAsync, to, from, bytes, count, attributes,
                                    attribute_indices, attribute_count, stream);
  if (error != cudaSuccess && failed != nullptr) {
    *failed = SIZE_MAX;  // not one entry's fault
  }
  return error;
}

cudaError_t CUDARTAPI cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start,
                                              cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

cudaError_t CUDARTAPI cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                  enum cudaStreamCaptureStatus* status,
                                                  unsigned long long* id, cudaGraph_t* graph,
                                                  const cudaGraphNode_t** dependencies,
                                                  size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                          cudaGraphNode_t* dependencies,
                                                          size_t count, unsigned int flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, kNoEdges, count, flags);
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count,
                                       struct cudaGraphNodeParams* parameters) {
  return cudaGraphAddNode_v2(node, graph, dependencies, kNoEdges, count, parameters);
}
cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, kNoEdges, count);
}
cudaError_t CUDARTAPI cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                  const cudaGraphNode_t* to, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, kNoEdges, count);
}
cudaError_t CUDARTAPI cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from,
                                        cudaGraphNode_t* to, size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}
cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                                   cudaGraphNode_t* dependencies, size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}
cudaError_t CUDARTAPI cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                                     cudaGraphNode_t* dependents, size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count);
}

cudaError_t CUDARTAPI cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
cudaError_t CUDARTAPI cudaThreadExit(void) { return cudaDeviceReset(); }
cudaError_t CUDARTAPI cudaThreadGetLimit(size_t* value, enum cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
cudaError_t CUDARTAPI cudaThreadSetLimit(enum cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}

}  // extern "C"
