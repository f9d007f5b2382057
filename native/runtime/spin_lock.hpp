// A lock for a few instructions, never held across a call out; a fork's child may simply reset it.
#pragma once

#include <atomic>

namespace deepum::runtime {

class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      while (taken_.load(std::memory_order_relaxed)) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    }
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }
  void reset() noexcept { taken_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace deepum::runtime
