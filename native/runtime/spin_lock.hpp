// A lock for a few instructions, never held across a call of the driver or the system.
#pragma once

#include <sched.h>

#include <atomic>

namespace deepum::runtime {

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

class SpinLock {
 public:
  void lock() noexcept {
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries < 64) {
        relax();
      } else {
        ::sched_yield();  // whoever holds it was descheduled
      }
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace deepum::runtime
