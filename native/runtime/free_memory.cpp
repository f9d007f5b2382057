// What is free of a device, told while the daemon wants to know. Beside it stands how far the GPU
// is, since the driver counts what the launches that have run brought, and the daemon knows of
// those that wait as well.
#include "contexts.hpp"
#include "driver.hpp"
#include "live_session.hpp"
#include "memory_watch.hpp"
#include "reading_limits.hpp"
#include "relaxed.hpp"
#include "session.hpp"

namespace deepum::runtime {

void Session::free_memory_after_launch(CUdevice device) noexcept {
  if (!wants_free_memory()) [[likely]] {
    return;
  }
  if (launches_since_reading_.fetch_add(1, std::memory_order_relaxed) + 1 >=
      mover::kReadingInterval) {
    read_free_memory(device);
  }
}

void Session::read_free_memory(CUdevice device) noexcept {
  const Driver& call = driver();
  CUdevice here = -1;
  if (!wants_free_memory() || !call.MemGetInfo || !call.CtxGetDevice ||
      call.CtxGetDevice(&here) != CUDA_SUCCESS || here != device) {
    return;
  }
  launches_since_reading_.store(0, std::memory_order_relaxed);
  const Relaxed mode;
  const std::uint64_t completed = markers.reached().completed;
  std::size_t free = 0, total = 0;
  if (call.MemGetInfo(&free, &total) == CUDA_SUCCESS) {
    tell_free_memory(device, free, completed, markers.reached().begun);
  }
}

void read_free_memory(CUdevice device) noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->read_free_memory(device);
  }
}

}  // namespace deepum::runtime
