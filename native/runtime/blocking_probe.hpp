// Whether the driver defers a call that lies behind an event which has not come, or blocks its
// caller until it has. Found out with the first such calls that the mover makes: before each goes
// an event that a thread of ours completes, when the call has returned, or after 20 ms.
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cstdint>

#include "deferral.hpp"
#include "pinned_words.hpp"

namespace deepum::runtime {

class BlockingProbe {
 public:
  // Nothing is asked unless it is kUnknown.
  explicit BlockingProbe(Deferral known) noexcept : deferral_(known) {}
  BlockingProbe(const BlockingProbe&) = delete;
  BlockingProbe& operator=(const BlockingProbe&) = delete;

  Deferral deferral() const noexcept { return deferral_; }
  // Before the first call: a driver that cannot be asked counts as one that defers.
  void begin() noexcept;

  // Makes the call, which is on that stream, with a context current; finds out by it what the
  // driver does, as long as that is unknown.
  template <typename Call>
  CUresult make(CUstream stream, const Call& call) {
    const bool asks = deferral_ == Deferral::kUnknown && arm(stream);
    const CUresult result = call();
    if (asks) {
      disarm();
    }
    return result;
  }

 private:
  // The stream waits from here on, 20 ms at most. False: the driver refuses, and counts as one that
  // defers.
  bool arm(CUstream stream) noexcept;
  void disarm() noexcept;
  void let_go() noexcept;

  Deferral deferral_;
  PinnedWords word_;         // one
  CUstream gate_ = nullptr;  // while armed: waits for the word,
  CUevent event_ = nullptr;  // and this comes behind it
  std::uint64_t round_ = 0;  // what the stream waits for the word to be
  unsigned blocked_ = 0;     // calls in a row
  sem_t returned_{};
  std::atomic<bool> late_{false};  // the event came first
  pthread_t opener_{};
};

}  // namespace deepum::runtime
