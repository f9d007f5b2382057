// Streams of the program that are made to wait.
#include <mutex>

#include "contexts.hpp"
#include "driver.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

CUstream StreamMarkers::waitable() noexcept {
  const CUstream handle = stream();
  return handle && handle != CU_STREAM_PER_THREAD && !is_capturing(handle) ? handle : nullptr;
}

// The handle of a default stream means that of the current context.
bool StreamMarkers::wait(CUevent event) noexcept {
  const auto wait_here = [&] {
    const CUstream handle = waitable();
    return handle != nullptr && driver().StreamWaitEvent(handle, event, 0) == CUDA_SUCCESS;
  };
  if (stream() != CU_STREAM_LEGACY) {
    return wait_here();
  }
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(lock_);
    context = context_;
  }
  if (context == current_context()) {
    return wait_here();
  }
  const Elsewhere there(context);
  return there && wait_here();
}

CUstream StreamMarkers::in_context(CUcontext context) noexcept {
  CUstream handle;
  {
    const std::lock_guard lock(lock_);
    handle = context && context_ == context ? stream() : nullptr;
  }
  return handle && handle != CU_STREAM_PER_THREAD && !is_capturing(handle) ? handle : nullptr;
}

}  // namespace deepum::runtime
