#include "blocking_probe.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <ctime>

#include "driver.hpp"
#include "message.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

constexpr long kMostHeld = 20000000;  // ns; a call that is deferred takes microseconds
constexpr unsigned kConvincing = 3;   // a thread may be kept from running that long once
constexpr std::size_t kProbePage = 1 << 12;

}  // namespace

void BlockingProbe::begin() noexcept {
  const Driver& call = driver();
  const bool can = call.StreamWaitValue64 && call.MemHostRegister && call.MemHostGetDevicePointer && call.StreamCreate &&
                   call.StreamDestroy && call.EventCreate && call.EventDestroy && call.EventRecord && call.StreamWaitEvent;
  if (found_ == Deferral::kUnknown && !can) {
    found_ = Deferral::kDefers;
  }
}

bool BlockingProbe::prepare() noexcept {
  if (word_ != nullptr) {
    return true;
  }
  const Driver& call = driver();
  // Shared, so that a fork leaves the page that the driver has pinned where it is.
  void* const at = ::mmap(nullptr, kProbePage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    return false;
  }
  if (call.MemHostRegister(at, kProbePage, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS) {
    ::munmap(at, kProbePage);
    return false;
  }
  if (call.MemHostGetDevicePointer(&device_word_, at, 0) != CUDA_SUCCESS) {
    return false;
  }
  word_ = static_cast<std::uint64_t*>(at);
  return true;
}

bool BlockingProbe::arm(CUstream stream) noexcept {
  const Driver& call = driver();
  found_ = Deferral::kDefers;
  if (!prepare() || ::sem_init(&returned_, 0, 0) != 0 || call.StreamCreate(&gate_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    return false;
  }
  if (call.EventCreate(&event_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    call.StreamDestroy(gate_);
    return false;
  }
  late_.store(false);
  ++round_;
  const auto open = [](void* self) -> void* {
    auto& probe = *static_cast<BlockingProbe*>(self);
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += kMostHeld;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int waited;
    do {
      waited = ::sem_timedwait(&probe.returned_, &until);
    } while (waited != 0 && errno == EINTR);
    probe.late_.store(waited != 0);
    __atomic_store_n(probe.word_, probe.round_, __ATOMIC_SEQ_CST);
    return nullptr;
  };
  // Nothing is queued without a thread that lets it go on.
  if (!start_thread(&opener_, "deepum-probe", open, this)) {
    call.EventDestroy(event_);
    call.StreamDestroy(gate_);
    return false;
  }
  if (call.StreamWaitValue64(gate_, device_word_, round_, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS &&
      call.EventRecord(event_, gate_) == CUDA_SUCCESS && call.StreamWaitEvent(stream, event_, 0) == CUDA_SUCCESS) {
    return true;
  }
  let_go();
  return false;
}

void BlockingProbe::let_go() noexcept {
  ::sem_post(&returned_);
  ::pthread_join(opener_, nullptr);
  ::sem_destroy(&returned_);
  if (driver().StreamSynchronize) {
    driver().StreamSynchronize(gate_);
  }
  driver().EventDestroy(event_);
  driver().StreamDestroy(gate_);
}

void BlockingProbe::disarm() noexcept {
  let_go();
  blocked_ = late_.load() ? blocked_ + 1 : 0;
  if (blocked_ == 0) {
    return;
  }
  found_ = blocked_ < kConvincing ? Deferral::kUnknown : Deferral::kBlocks;
  if (found_ == Deferral::kBlocks) {
    say(Level::kInformation,
        "mover: the driver blocks a thread that moves memory behind an event; each such move waits on the host for what it follows");
  }
}

}  // namespace deepum::runtime
