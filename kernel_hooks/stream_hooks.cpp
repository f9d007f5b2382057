// Streams come and go, the program waits, captures begin and end.
#include <algorithm>

#include "captures.hpp"
#include "devices.hpp"
#include "discard_order.hpp"
#include "memory.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "streams.hpp"
#include "waits.hpp"

namespace deepum::hooks {
namespace {

template <bool kPerThread>
CUresult on_cuStreamCreate(CUstream* stream, unsigned flags) {
  const CUresult result = forward(real<false>().cuStreamCreate, stream, flags);
  if (result == CUDA_SUCCESS && stream) {
    stream_created(*stream);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  const CUresult result =
      forward(real<false>().cuStreamCreateWithPriority, stream, flags, priority);
  if (result == CUDA_SUCCESS && stream) {
    stream_created(*stream);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags,
                                   int priority) {
  const CUresult result =
      forward(real<false>().cuGreenCtxStreamCreate, stream, context, flags, priority);
  streams_unknowable();
  if (result == CUDA_SUCCESS && stream) {
    stream_created(*stream);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuStreamDestroy_v2(CUstream stream) {
  stream_ends(stream);
  return forward(real<false>().cuStreamDestroy_v2, stream);
}

template <bool kPerThread>
CUresult on_cuStreamSynchronize(CUstream stream) {
  const StreamRef at = stream_of(stream, kPerThread);
  if (at.device < 0 || capturing(at)) {
    return forward(real<kPerThread>().cuStreamSynchronize, stream);
  }
  about_to_wait(at.id, at.device);
  const CUresult result = forward(real<kPerThread>().cuStreamSynchronize, stream);
  if (result == CUDA_SUCCESS) {
    waited(current_device());
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuEventSynchronize(CUevent event) {
  about_to_wait(DEEPUM_ALL_STREAMS, current_device());
  const CUresult result = forward(real<false>().cuEventSynchronize, event);
  if (result == CUDA_SUCCESS) {
    waited(current_device());
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuStreamBeginCapture(CUstream stream) {
  const CUresult result = forward(real<kPerThread>().cuStreamBeginCapture, stream);
  if (result == CUDA_SUCCESS) {
    capture_began(stream_of(stream, kPerThread));
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const CUresult result = forward(real<kPerThread>().cuStreamBeginCapture_v2, stream, mode);
  if (result == CUDA_SUCCESS) {
    capture_began(stream_of(stream, kPerThread));
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                        const CUgraphNode* dependencies,
                                        const CUgraphEdgeData* data, size_t count,
                                        CUstreamCaptureMode mode) {
  const CUresult result = forward(real<kPerThread>().cuStreamBeginCaptureToGraph, stream, graph,
                                  dependencies, data, count, mode);
  if (result == CUDA_SUCCESS) {
    capture_began(stream_of(stream, kPerThread));
  }
  return result;
}

// A capture that was invalidated ends too, with that error.
template <bool kPerThread>
CUresult on_cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const StreamRef at = stream_of(stream, kPerThread);
  const unsigned long long id = any_capture() ? capture_id(at.handle) : 0;
  const CUresult result = forward(real<kPerThread>().cuStreamEndCapture, stream, graph);
  capture_became(id, result == CUDA_SUCCESS && graph ? *graph : nullptr);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    capture_ended(at);
  }
  return result;
}

// What such a wait waits for may be launched later on another stream.
template <bool kPerThread>
CUresult on_cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned flags) {
  runtime::before_value_wait();
  return forward(real<kPerThread>().cuStreamWaitValue32, stream, address, value, flags);
}

template <bool kPerThread>
CUresult on_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                   unsigned flags) {
  runtime::before_value_wait();
  return forward(real<kPerThread>().cuStreamWaitValue32_v2, stream, address, value, flags);
}

template <bool kPerThread>
CUresult on_cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned flags) {
  runtime::before_value_wait();
  return forward(real<kPerThread>().cuStreamWaitValue64, stream, address, value, flags);
}

template <bool kPerThread>
CUresult on_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                   unsigned flags) {
  runtime::before_value_wait();
  return forward(real<kPerThread>().cuStreamWaitValue64_v2, stream, address, value, flags);
}

void before_operations(const CUstreamBatchMemOpParams* operations, unsigned count) noexcept {
  const auto waits = [](const CUstreamBatchMemOpParams& each) {
    return each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  };
  if (operations && std::any_of(operations, operations + count, waits)) {
    runtime::before_value_wait();
  }
}

template <bool kPerThread>
CUresult on_cuStreamBatchMemOp(CUstream stream, unsigned count,
                               CUstreamBatchMemOpParams* operations, unsigned flags) {
  before_operations(operations, count);
  return forward(real<kPerThread>().cuStreamBatchMemOp, stream, count, operations, flags);
}

template <bool kPerThread>
CUresult on_cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                                  CUstreamBatchMemOpParams* operations, unsigned flags) {
  before_operations(operations, count);
  return forward(real<kPerThread>().cuStreamBatchMemOp_v2, stream, count, operations, flags);
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_STREAM
#include "exports.inc"
