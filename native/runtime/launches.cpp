#include "launches.hpp"

#include <algorithm>
#include <utility>

#include "discard_order.hpp"
#include "driver.hpp"
#include "handout_limits.hpp"
#include "live_session.hpp"
#include "marker_limits.hpp"
#include "shim_settings.hpp"

namespace deepum::runtime {
namespace {

constinit thread_local bool next_ungated [[gnu::tls_model("initial-exec")]] = false;

// Nobody but this thread can do anything on its own default stream: the marker that the mover may
// need comes first, what holds the launch comes after.
void wait_in_lock_step(Session& session, CUstream stream, std::uint32_t stream_id,
                       std::uint64_t sequence) noexcept {
  const bool own = stream == CU_STREAM_PER_THREAD;
  if (own) {
    session.markers.flush(stream_id);
  }
  session.wait_for_decisions(sequence);
  for (std::size_t i = 0; i < kBringing.size() && own; ++i) {
    if (CUevent hold = session.mover().take_hold(stream_id, i)) {
      driver().StreamWaitEvent(stream, hold, 0);
    }
  }
}

// A stream that nothing was launched on yet was not among those that waited; without a session
// nobody knows. It is made known first: whoever takes memory back from a discard in the meantime
// either sees it, or has left the discard here to be followed.
void enter_stream(Session* session, CUstream stream, std::uint32_t stream_id) noexcept {
  if (!session) [[unlikely]] {
    follow_discards(stream);
  } else if (!session->markers.knows(stream, stream_id)) [[unlikely]] {
    session->markers.enter(stream, stream_id);
    follow_discards(stream);
  }
}

}  // namespace

void before_execute(CUdevice, CUstream stream, std::uint32_t stream_id,
                    std::uint64_t sequence) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  const bool timed = session && sequence != 0 && session->wants_times() &&
                     (settings().lock_step || session->gates.used());
  if (timed) [[unlikely]] {
    session->stalls.before(stream, stream_id);
  }
  if (session && sequence != 0 && settings().lock_step) {
    wait_in_lock_step(*session, stream, stream_id, sequence);
  }
  enter_stream(session, stream, stream_id);
  const bool ungated = std::exchange(next_ungated, false);
  if (session && sequence != 0 && session->gates.wanted() && !ungated) {
    session->wait_at_gate(stream, stream_id, sequence);
  }
  if (timed) [[unlikely]] {
    session->stalls.after(stream, stream_id, sequence);
  }
}

void after_execute(CUdevice device, CUstream stream, std::uint32_t stream_id) noexcept {
  Session* session = launching.session;
  launching.session = nullptr;
  if (!session || session != live.load(std::memory_order_relaxed)) {
    return;
  }
  std::uint32_t interval = settings().marker_interval;
  if (session->gates.wanted()) {
    interval = 1;
  } else if (session->wants_free_memory()) {
    interval = std::min(interval, mover::kMarkerIntervalOfReadings);
  }
  if (session->markers.launched(stream, stream_id, launching.sequence, interval,
                                launching.blocks)) {
    session->marker_recorded();
  }
  session->free_memory_after_launch(device);
}

void before_synchronise(std::uint32_t stream_id) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session) {
    return;
  }
  if (session->markers.flush(stream_id)) {
    session->marker_recorded();
  }
  // What can go on while the program blocks has to be under way before it does.
  if (settings().lock_step && last_sequence != 0) {
    session->wait_for_decisions(last_sequence);
  }
}

bool waits_at_gates() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session && session->gates.used();
}

void before_locked_wait() noexcept {
  if (Session* session = live.load(std::memory_order_acquire); session && session->gates.used()) {
    session->gates.settle();
  }
}

void next_launch_ungated() noexcept { next_ungated = true; }

void before_handout(std::uint64_t bytes) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (session && bytes >= mover::kAwaitedHandout && session->gates.wanted()) {
    session->wait_for_mover();
  }
}

void stream_destroyed(CUstream stream, std::uint32_t stream_id) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session) {
    return;
  }
  session->markers.destroyed(stream, stream_id);
  session->marker_recorded();
}

}  // namespace deepum::runtime
