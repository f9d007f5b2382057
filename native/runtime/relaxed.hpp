// While a program's thread captures in the mode GLOBAL the driver refuses many calls to every
// thread, asking for an event among them, and the capture is spoiled by the question. Nothing of
// ours concerns a capture.
#pragma once

#include "driver.hpp"

namespace deepum::runtime {

// This thread captures, and minds others' captures, in the mode RELAXED for as long as this lives.
class Relaxed {
 public:
  Relaxed() noexcept
      : exchanged_(driver().ThreadExchangeStreamCaptureMode &&
                   driver().ThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}
  ~Relaxed() {
    if (exchanged_) {
      driver().ThreadExchangeStreamCaptureMode(&mode_);
    }
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // from then on the one before
  bool exchanged_;
};

}  // namespace deepum::runtime
