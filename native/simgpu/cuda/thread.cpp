#include "thread.hpp"

#include <pthread.h>

namespace deepum::simgpu {
namespace {

// Not a thread_local object: the main thread's are destroyed before its exit handlers run, and
// those still call the driver.
thread_local Thread* current = nullptr;

pthread_key_t key() {
  static const pthread_key_t made = [] {
    pthread_key_t k{};
    pthread_key_create(&k, [](void* thread) {
      delete static_cast<Thread*>(thread);
      current = nullptr;
    });
    return k;
  }();
  return made;
}

}  // namespace

Thread& this_thread() noexcept {
  if (current == nullptr) {
    current = new Thread;  // NOLINT(bugprone-unhandled-exception-at-new)
    pthread_setspecific(key(), current);
  }
  return *current;
}

}  // namespace deepum::simgpu
