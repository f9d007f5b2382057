// Contexts that this thread is in, and streams of which it can be said whether they capture.
#pragma once

#include <cuda.h>

#include "driver.hpp"

namespace deepum::runtime {

CUcontext current_context() noexcept;         // null: none
bool is_capturing(CUstream stream) noexcept;  // or nobody can tell

// This thread is in another context for as long as this lives.
class Elsewhere {
 public:
  explicit Elsewhere(CUcontext context) noexcept
      : pushed_(context && driver().CtxPushCurrent && driver().CtxPopCurrent &&
                driver().CtxPushCurrent(context) == CUDA_SUCCESS) {}
  ~Elsewhere() {
    if (pushed_) {
      CUcontext popped = nullptr;
      driver().CtxPopCurrent(&popped);
    }
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  explicit operator bool() const noexcept { return pushed_; }

 private:
  bool pushed_;
};

}  // namespace deepum::runtime
