#include "pinned_words.hpp"

#include <sys/mman.h>

#include "driver.hpp"

namespace deepum::runtime {

bool can_pin_words() noexcept {
  const Driver& call = driver();
  return call.MemHostRegister && call.MemHostGetDevicePointer && call.StreamWaitValue64;
}

bool pin_words(std::size_t bytes, PinnedWords* made) noexcept {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    return false;
  }
  if (driver().MemHostRegister(
          at, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS) {
    ::munmap(at, bytes);
    return false;
  }
  made->host = static_cast<std::uint64_t*>(at);
  return driver().MemHostGetDevicePointer(&made->device, at, 0) == CUDA_SUCCESS;
}

}  // namespace deepum::runtime
