// Whether the driver defers a call that lies behind an event which has not come, or blocks its caller until it has. Found out with the
// first such calls that the mover makes: before each goes an event that a thread of ours completes, when the call has returned, or after
// 20 ms.
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cstdint>

#include "deferral.hpp"

namespace deepum::runtime {

class BlockingProbe {
 public:
  explicit BlockingProbe(Deferral known) noexcept : found_(known) {}  // of which nothing is asked unless it is kUnknown
  BlockingProbe(const BlockingProbe&) = delete;
  BlockingProbe& operator=(const BlockingProbe&) = delete;

  Deferral found() const noexcept { return found_; }
  // Before anything else: what cannot be asked of this driver counts as deferred.
  void begin() noexcept;

  // With a context current. Between `arm` and `disarm` is one call on the stream, which waits for an event that comes 20 ms from now at the
  // latest. False: this driver cannot be asked, and from now on counts as one that defers.
  bool arm(CUstream stream) noexcept;
  void disarm() noexcept;

 private:
  bool prepare() noexcept;
  void let_go() noexcept;

  Deferral found_;
  std::uint64_t* word_ = nullptr;  // in a page of its own, which the driver has pinned and keeps
  CUdeviceptr device_word_ = 0;
  CUstream gate_ = nullptr;  // while armed: waits for the word,
  CUevent event_ = nullptr;  // and this comes behind it
  std::uint64_t round_ = 0;  // what the stream waits for the word to be
  unsigned blocked_ = 0;     // calls in a row
  sem_t returned_{};
  std::atomic<bool> late_{false};  // the event came first
  pthread_t opener_{};
};

}  // namespace deepum::runtime
