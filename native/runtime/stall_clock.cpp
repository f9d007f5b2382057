#include "stall_clock.hpp"

#include <cmath>
#include <mutex>
#include <new>

#include "contexts.hpp"
#include "driver.hpp"
#include "relaxed.hpp"

namespace deepum::runtime {

// Events of another context end with it.
bool StallClock::prepare(Timed& timed) noexcept {
  const Driver& call = driver();
  const CUcontext context = current_context();
  if (timed.context != context) {
    timed = {nullptr, nullptr, context, 0};
  }
  for (CUevent* const event : {&timed.before, &timed.after}) {
    if (!*event &&
        (!call.EventCreate || call.EventCreate(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)) {
      *event = nullptr;
      return false;
    }
  }
  return true;
}

void StallClock::before(CUstream stream, std::uint32_t id) noexcept {
  Stream& of = streams_[id];
  Timed* next = nullptr;
  {
    const std::lock_guard lock(of.lock);
    if (!of.timed) {
      of.timed.reset(new (std::nothrow) std::array<Timed, kKept>);
    }
    if (!of.timed || of.open || of.made - of.taken == kKept) {
      return;
    }
    of.open = true;
    next = &(*of.timed)[of.made % kKept];
  }
  const Relaxed mode;
  if (is_capturing(stream) || !prepare(*next) || !driver().EventRecord ||
      driver().EventRecord(next->before, stream) != CUDA_SUCCESS) {
    const std::lock_guard lock(of.lock);
    of.open = false;
  }
}

void StallClock::after(CUstream stream, std::uint32_t id, std::uint64_t sequence) noexcept {
  Stream& of = streams_[id];
  Timed* next = nullptr;
  {
    const std::lock_guard lock(of.lock);
    if (!of.open) {
      return;
    }
    next = &(*of.timed)[of.made % kKept];
  }
  const Relaxed mode;
  const bool recorded = driver().EventRecord(next->after, stream) == CUDA_SUCCESS;
  const std::lock_guard lock(of.lock);
  of.open = false;
  next->sequence = sequence;
  of.made += recorded ? 1 : 0;
}

std::uint64_t StallClock::waited(std::uint32_t id, std::uint64_t completed) noexcept {
  Stream& of = streams_[id];
  for (;;) {
    Timed timed;
    {
      const std::lock_guard lock(of.lock);
      if (of.taken == of.made || (*of.timed)[of.taken % kKept].sequence > completed) {
        break;
      }
      timed = (*of.timed)[of.taken % kKept];
    }
    float milliseconds = 0;
    if (driver().EventElapsedTime &&
        driver().EventElapsedTime(&milliseconds, timed.before, timed.after) == CUDA_SUCCESS) {
      of.milliseconds += milliseconds;
    }
    const std::lock_guard lock(of.lock);
    ++of.taken;
  }
  return static_cast<std::uint64_t>(std::llround(of.milliseconds * 1000));
}

}  // namespace deepum::runtime
