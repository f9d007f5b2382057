// A mutex that a fork's child can take over: whoever held it in the parent is not in the child.
#pragma once

#include <mutex>
#include <new>

namespace deepum::hooks {

class ForkableMutex {
 public:
  void lock() noexcept { mutex_.lock(); }
  bool try_lock() noexcept { return mutex_.try_lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  // In the child. False: it was held, and what it guards may be half written.
  bool renew() noexcept {
    const bool free = mutex_.try_lock();
    new (&mutex_) std::mutex;
    return free;
  }

 private:
  std::mutex mutex_;
};

}  // namespace deepum::hooks
