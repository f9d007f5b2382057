#include "live_session.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "allocations.hpp"
#include "discards.hpp"
#include "handout_limits.hpp"
#include "message.hpp"
#include "range_parts.hpp"
#include "relaxed.hpp"

namespace deepum::runtime {
namespace {

constexpr int kLeaveMilliseconds = 2000;
constexpr timespec kHandoutNap{0, mover::kHandoutNapNanoseconds};

}  // namespace

std::uint64_t Session::emit(deepum_event_header* record) noexcept {
  if (record->words < 2 || record->words > DEEPUM_MAX_EVENT_WORDS) {
    return 0;
  }
  EventRing::Place place;
  if (record->kind == DEEPUM_EVENT_EXECUTE) {
    const auto& launch = *reinterpret_cast<const deepum_execute_event*>(record);
    if (launching.session == this) {
      [[unlikely]] markers.failed(launching.stream);
    }
    std::uint64_t sequence = 0;
    place = markers.reserve(ring, launch.stream, record->words, &sequence);
    launching = {this, launch.stream, blocks_of(launch), sequence};
  } else {
    place = ring.reserve(record->words);
  }
  if (place.sequence == 0) [[unlikely]] {
    __atomic_fetch_add(&memory_.control->events_lost, 1u, __ATOMIC_RELAXED);
    lost_.store(true, std::memory_order_relaxed);
    return 0;
  }
  last_sequence = place.sequence;
  if (ring.publish(place, record)) {
    ring.wake_daemon();
  }
  return place.sequence;
}

void Session::wait_for_decisions(std::uint64_t sequence) noexcept {
  switch (lock_step.wait(sequence, [&] { return mover_.has_work(); })) {
    case LockStep::Answer::kDaemonSilent:
      return daemon_gone(daemon_silent());
    case LockStep::Answer::kMoverSilent:  // the driver holds it up: nobody's fault, and it may end
      if (!late_reported_.exchange(true)) {
        say(Level::kWarning,
            "warning: mover: a move has taken more than 10 s; launches go on without waiting for "
            "such");
      }
      return;
    case LockStep::Answer::kDone:
    case LockStep::Answer::kStopped:
      return;
  }
}

void Session::wait_at_gate(CUstream stream, std::uint32_t stream_id,
                           std::uint64_t sequence) noexcept {
  const std::uint64_t epoch = markers.epoch();
  const bool marked = markers.mark_before(stream, stream_id, sequence);
  if (markers.epoch() != epoch) {
    mover_.marker_recorded();
  }
  if (marked && gates.launch(stream, stream_id, sequence)) {
    mover_.wake();
  }
}

// Nobody waits for a mover that is late until it has caught up, nor while the GPU is about to run
// out of launches.
void Session::wait_for_mover() noexcept {
  if (gates.processed() >= last_sequence ||
      gates.processed() < awaited_in_vain_.load(std::memory_order_relaxed)) {
    return;
  }
  const int kept = errno;
  const Relaxed relaxed;
  for (std::uint32_t naps = 0; gates.processed() < last_sequence && gates.used() &&
                               markers.has_outstanding(mover::kLeastOutstanding);
       ++naps) {
    if (naps == mover::kMostNaps) {
      awaited_in_vain_.store(last_sequence, std::memory_order_relaxed);
      break;
    }
    ::nanosleep(&kHandoutNap, nullptr);
  }
  errno = kept;
}

// From any thread, once: the program goes on alone.
void Session::daemon_gone(const char* why) noexcept {
  Session* self = this;
  if (!live.compare_exchange_strong(self, nullptr)) {
    return;
  }
  say(Level::kWarning,
      "warning: daemon: %s; going on with plain unified memory, without prefetching", why);
  lock_step.stop();
  gates.end();
  mover_.ask_to_stop();
}

// LOST, then everything that lives once more (records.h). Only once there is much room, since it
// may take much.
void Session::recover_lost_events() noexcept {
  if (!lost_.load(std::memory_order_relaxed) || ring.free_bytes() < DEEPUM_EVENT_RING_BYTES / 2) {
    return;
  }
  lost_.store(false);
  const std::uint64_t lost = __atomic_load_n(&memory_.control->events_lost, __ATOMIC_RELAXED);
  if (lost == lost_reported_) {
    return;
  }
  deepum_lost_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_LOST;
  event.events = lost - lost_reported_;
  if (emit(&event.header) == 0) {
    return;
  }
  lost_reported_ = lost;
  Allocations::instance().announce();
  say(Level::kInformation, "the daemon fell behind; %llu events were lost",
      static_cast<unsigned long long>(event.events));
}

void Session::leave() noexcept {
  Session* self = this;
  const bool was_live = live.compare_exchange_strong(self, nullptr);
  lock_step.stop();
  gates.end();
  __atomic_store_n(&memory_.control->program_left, 1u, __ATOMIC_SEQ_CST);
  const bool stopped = mover_.stop(kLeaveMilliseconds);
  if (was_live) {
    ring.wake_daemon();
  }
  if (stopped) {
    connection.close();
  } else {
    Discards::instance().end();
  }
  starter.reap_if_ended();
}

// The memory stays mapped: nothing writes to it any more.
void Session::close_in_child(bool beginning) noexcept {
  connection.close();
  if (beginning) {
    ::close(memory_.memory_fd);
  }
  ::close(memory_.daemon_fd);
  ::close(memory_.mover_fd);
}

}  // namespace deepum::runtime
