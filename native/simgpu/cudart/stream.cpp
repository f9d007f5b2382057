// Streams, events, host functions, capture.
#include <memory>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                                   int priority) {
  return call(&Driver::cuStreamCreateWithPriority, stream, flags, priority);
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
  return call(&Driver::cuStreamDestroy, stream);
}
cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call(&Driver::cuStreamGetPriority, stream, priority);
}
cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return call(&Driver::cuStreamGetFlags, stream, flags);
}
cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call(&Driver::cuStreamGetId, stream, id);
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
  return call(&Driver::cuStreamSynchronize, stream);
}
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                          unsigned int flags) {
  return call(&Driver::cuStreamWaitEvent, stream, event, flags);
}

// "Not ready" is an answer, not an error to remember.
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream) {
  const CUresult bound = bind();
  const CUresult result = bound == CUDA_SUCCESS ? stream_driver().cuStreamQuery(stream) : bound;
  return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : done(result);
}
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
  const CUresult bound = bind();
  const CUresult result = bound == CUDA_SUCCESS ? driver().cuEventQuery(event) : bound;
  return result == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : done(result);
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call(&Driver::cuEventCreate, event, flags);
}
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
  return call(&Driver::cuEventDestroy, event);
}
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(&Driver::cuEventRecord, event, stream);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                               unsigned int flags) {
  return call(&Driver::cuEventRecordWithFlags, event, stream, flags);
}
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
  return call(&Driver::cuEventSynchronize, event);
}
cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                           cudaEvent_t end) {
  return call(&Driver::cuEventElapsedTime, milliseconds, start, end);
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call(&Driver::cuLaunchHostFunc, stream, CUhostFn(function), data);
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                            void* data, unsigned int flags) {
  struct Callback {
    cudaStreamCallback_t function;
    void* data;
  };
  auto made = std::make_unique<Callback>(Callback{callback, data});
  const cudaError_t error =
      call(&Driver::cuStreamAddCallback, stream,
           CUstreamCallback([](CUstream from, CUresult status, void* user) {
             const std::unique_ptr<Callback> owned(static_cast<Callback*>(user));
             owned->function(from, code(status), owned->data);
           }),
           static_cast<void*>(made.get()), flags);
  if (error == cudaSuccess) {
    // The callback frees it. NOLINTNEXTLINE(bugprone-unused-return-value)
    static_cast<void>(made.release());
  }
  return error;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
}

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return call(&Driver::cuStreamBeginCapture, stream, static_cast<CUstreamCaptureMode>(mode));
}
cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                    const cudaGraphNode_t* dependencies,
                                                    const cudaGraphEdgeData* edges, size_t count,
                                                    enum cudaStreamCaptureMode mode) {
  return call(&Driver::cuStreamBeginCaptureToGraph, stream, graph, dependencies,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count,
              static_cast<CUstreamCaptureMode>(mode));
}
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(&Driver::cuStreamEndCapture, stream, graph);
}
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream,
                                            enum cudaStreamCaptureStatus* status) {
  return call(&Driver::cuStreamIsCapturing, stream,
              reinterpret_cast<CUstreamCaptureStatus*>(status));
}
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
                                               enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** dependencies,
                                               const cudaGraphEdgeData** edges, size_t* count) {
  static_assert(sizeof(unsigned long long) == sizeof(cuuint64_t));
  return call(
      &Driver::cuStreamGetCaptureInfo, stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
      reinterpret_cast<cuuint64_t*>(id), graph, const_cast<const CUgraphNode**>(dependencies),
      reinterpret_cast<const CUgraphEdgeData**>(const_cast<cudaGraphEdgeData const**>(edges)),
      count);
}
cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                          cudaGraphNode_t* dependencies,
                                                          const cudaGraphEdgeData* edges,
                                                          size_t count, unsigned int flags) {
  return call(&Driver::cuStreamUpdateCaptureDependencies, stream, dependencies,
              reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
}
cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return call(&Driver::cuThreadExchangeStreamCaptureMode,
              reinterpret_cast<CUstreamCaptureMode*>(mode));
}

}  // extern "C"
