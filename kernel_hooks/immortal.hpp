// A global that is made at its first use, without the heap, and never destroyed: CUDA is used until
// the very end of a process.
#pragma once

#include <new>

namespace deepum::hooks {

template <typename T>
T& immortal() noexcept {
  alignas(T) static unsigned char memory[sizeof(T)];
  static T* const only = new (memory) T;
  return *only;
}

}  // namespace deepum::hooks
