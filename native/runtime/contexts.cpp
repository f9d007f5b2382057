#include "contexts.hpp"

namespace deepum::runtime {

CUcontext current_context() noexcept {
  CUcontext context = nullptr;
  return driver().CtxGetCurrent && driver().CtxGetCurrent(&context) == CUDA_SUCCESS ? context
                                                                                    : nullptr;
}

bool is_capturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return !driver().StreamIsCapturing ||
         driver().StreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace deepum::runtime
