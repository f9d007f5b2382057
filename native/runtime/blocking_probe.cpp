#include "blocking_probe.hpp"

#include <cerrno>
#include <ctime>

#include "driver.hpp"
#include "message.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

constexpr int kMostHeld = 20;        // ms; a call that is deferred takes microseconds
constexpr unsigned kConvincing = 3;  // a thread may be kept from running that long once

}  // namespace

void BlockingProbe::begin() noexcept {
  const Driver& call = driver();
  const bool can = can_pin_words() && call.StreamCreate && call.StreamDestroy && call.EventCreate &&
                   call.EventDestroy && call.EventRecord && call.StreamWaitEvent;
  if (deferral_ == Deferral::kUnknown && !can) {
    deferral_ = Deferral::kDefers;
  }
}

bool BlockingProbe::arm(CUstream stream) noexcept {
  const Driver& call = driver();
  deferral_ = Deferral::kDefers;
  if ((word_.device == 0 && !pin_words(sizeof(std::uint64_t), &word_)) ||
      ::sem_init(&returned_, 0, 0) != 0 ||
      call.StreamCreate(&gate_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
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
    const timespec until = realtime_in(kMostHeld);
    int waited;
    do {
      waited = ::sem_timedwait(&probe.returned_, &until);
    } while (waited != 0 && errno == EINTR);
    probe.late_.store(waited != 0);
    __atomic_store_n(probe.word_.host, probe.round_, __ATOMIC_SEQ_CST);
    return nullptr;
  };
  // Nothing is queued without a thread that lets it go on.
  if (!start_thread(&opener_, "deepum-probe", open, this)) {
    call.EventDestroy(event_);
    call.StreamDestroy(gate_);
    return false;
  }
  if (call.StreamWaitValue64(gate_, word_.device, round_, CU_STREAM_WAIT_VALUE_GEQ) ==
          CUDA_SUCCESS &&
      call.EventRecord(event_, gate_) == CUDA_SUCCESS &&
      call.StreamWaitEvent(stream, event_, 0) == CUDA_SUCCESS) {
    return true;
  }
  let_go();
  return false;
}

// What was queued on the stream is done all the same. It is not waited for: it may share a channel
// of the card with one that stands still.
void BlockingProbe::let_go() noexcept {
  ::sem_post(&returned_);
  ::pthread_join(opener_, nullptr);
  ::sem_destroy(&returned_);
  driver().EventDestroy(event_);
  driver().StreamDestroy(gate_);
}

void BlockingProbe::disarm() noexcept {
  let_go();
  blocked_ = late_.load() ? blocked_ + 1 : 0;
  if (blocked_ == 0) {
    return;
  }
  deferral_ = blocked_ < kConvincing ? Deferral::kUnknown : Deferral::kBlocks;
  if (deferral_ == Deferral::kBlocks) {
    say(Level::kInformation,
        "mover: the driver blocks a thread that moves memory behind an event; each such move waits "
        "on the host for what it follows");
  }
}

}  // namespace deepum::runtime
