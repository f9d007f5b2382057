#include "session.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include "allocations.hpp"
#include "connection.hpp"
#include "driver.hpp"
#include "event_ring.hpp"
#include "log.hpp"
#include "markers.hpp"
#include "mover.hpp"

namespace deepum::runtime {
namespace {

using std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(10);  // with a daemon that does not answer
constexpr int kSpin = 2000;                           // looks at decided_sequence before sleeping, some 20 us

struct Session {
  EventRing ring;
  Mover mover;
  int socket = -1;
  std::atomic<bool> off{false};  // the daemon is gone or was given up: everything below does nothing
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> announced_lost{0};
  pthread_t thread{};

  // Lock-step: launching threads take turns, and ask the mover thread for rounds.
  std::mutex turn;
  std::mutex lock;
  std::condition_variable asked, answered;
  std::uint64_t rounds_asked = 0, rounds_done = 0;
  bool ended = false;  // the mover thread has
};

std::atomic<Session*> session{nullptr};
enum class State { none, joining, joined, without };
std::atomic<State> state{State::none};
std::atomic<std::uint32_t> known_devices{0};  // bit i: device i was announced

void detach(Session& s, const char* why) noexcept {
  if (!s.off.exchange(true)) {
    say(1, "%s; the program goes on as plain unified memory", why);
    s.asked.notify_all();
    s.answered.notify_all();
  }
}

void take_commands(Session& s) {
  deepum_command command;
  while (s.ring.take(&command)) {
    s.mover.accept(command);
  }
}

// After events were lost: say so and tell again what lives, once there is room.
void announce_if_lost(Session& s) noexcept {
  const std::uint64_t lost = s.ring.lost();
  const std::uint64_t before = s.announced_lost.load(std::memory_order_relaxed);
  if (lost == before || !s.ring.half_empty()) {
    return;
  }
  deepum_lost_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_LOST;
  event.events = lost - before;
  if (s.ring.put(&event.header) != 0) {
    s.announced_lost.store(lost, std::memory_order_relaxed);
    Allocations::instance().announce();
    s.ring.wake_daemon();
  }
}

// Lock-step: rounds on request only, so that nothing happens between two launches but what they decide.
void serve_rounds(Session& s) {
  std::unique_lock guard(s.lock);
  while (!s.stop.load() && !s.off.load()) {
    s.asked.wait(guard, [&] { return s.rounds_asked != s.rounds_done || s.stop.load() || s.off.load(); });
    if (s.rounds_asked == s.rounds_done) {
      continue;
    }
    const std::uint64_t asked = s.rounds_asked;
    guard.unlock();
    announce_if_lost(s);
    take_commands(s);
    s.mover.issue();
    guard.lock();
    s.rounds_done = asked;
    s.answered.notify_all();
  }
}

void serve_commands(Session& s) {
  while (!s.stop.load() && !s.off.load()) {
    const std::uint64_t decided = s.ring.decided();
    announce_if_lost(s);
    take_commands(s);
    const bool left = s.mover.issue();
    const bool lost = s.ring.lost() != s.announced_lost.load(std::memory_order_relaxed);
    if (s.ring.prepare_sleep(decided)) {
      pollfd waits[] = {{s.ring.mover_fd(), POLLIN, 0}, {s.socket, POLLIN | POLLRDHUP, 0}};
      // What is left waits for a marker (after_execute wakes us) or for the hand-over limit (nothing does).
      const int ready = ::poll(waits, 2, left || lost ? 1 : 1000);
      if (ready > 0 && (waits[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
        detach(s, "the daemon has ended");
      }
    }
    s.ring.woke();
  }
}

void* mover_main(void* argument) noexcept {
  Session& s = *static_cast<Session*>(argument);
  ::pthread_setname_np(::pthread_self(), "deepum-mover");
  try {
    if (settings().lock_step) {
      serve_rounds(s);
    } else {
      serve_commands(s);
    }
  } catch (...) {  // out of memory
    detach(s, "the mover has run out of memory");
  }
  s.mover.clear();
  const std::lock_guard guard(s.lock);
  s.ended = true;
  s.answered.notify_all();
  return nullptr;
}

bool start_mover(Session& s) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // the program's signals are for its own threads
  const bool started = ::pthread_create(&s.thread, nullptr, mover_main, &s) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void join() noexcept {
  State expected = State::none;
  if (!state.compare_exchange_strong(expected, State::joining)) {
    return;  // done, or another thread is at it
  }
  auto* s = new (std::nothrow) Session;
  std::string why = "out of memory";
  if (s != nullptr && !s->ring.create()) {
    why = "no shared memory";
  } else if (s != nullptr) {
    s->socket = join_daemon({s->ring.memory_fd(), s->ring.daemon_fd(), s->ring.mover_fd()}, &why);
  }
  if (s == nullptr || s->socket < 0 || !start_mover(*s)) {
    say(1, "no daemon: %s; the program runs as plain unified memory", why.c_str());
    if (s != nullptr && s->socket >= 0) {
      ::close(s->socket);
    }
    delete s;
    state.store(State::without);
    return;
  }
  session.store(s, std::memory_order_release);
  state.store(State::joined, std::memory_order_release);
  std::atexit(leave);
}

Session* current() noexcept {
  Session* s = session.load(std::memory_order_acquire);
  return s != nullptr && !s->off.load(std::memory_order_relaxed) ? s : nullptr;
}

void announce_device(Session& s, CUdevice device) noexcept {
  const Driver& d = driver();
  std::size_t free = 0, total = 0;
  if (d.MemGetInfo == nullptr || d.MemGetInfo(&free, &total) != CUDA_SUCCESS) {
    return;
  }
  CUcontext context = nullptr;
  if (d.CtxGetCurrent != nullptr && d.CtxGetCurrent(&context) == CUDA_SUCCESS) {
    s.mover.set_context(device, context);
  }
  deepum_device_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_DEVICE;
  event.header.device = static_cast<std::uint32_t>(device);
  event.total_bytes = total;
  event.capacity_bytes = std::min<std::uint64_t>(free, settings().gpu_memory);
  emit(&event.header);
}

// Waits until the daemon has decided all up to `sequence`, awake at first, then asleep on the eventfd and the socket.
bool wait_decided(Session& s, std::uint64_t sequence) noexcept {
  s.ring.wake_daemon();
  for (int i = 0; i < kSpin; ++i) {
    if (s.ring.decided() >= sequence) {
      return true;
    }
    if (i % 200 == 199) {
      ::sched_yield();
    }
  }
  const auto deadline = steady_clock::now() + kPatience;
  while (true) {
    const std::uint64_t decided = s.ring.decided();
    if (decided >= sequence) {
      return true;
    }
    if (s.ring.prepare_sleep(decided) || s.ring.decided() < sequence) {
      pollfd waits[] = {{s.ring.mover_fd(), POLLIN, 0}, {s.socket, POLLIN | POLLRDHUP, 0}};
      const int ready = ::poll(waits, 2, 100);
      if (ready > 0 && (waits[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
        s.ring.woke();
        detach(s, "the daemon has ended");
        return false;
      }
    }
    s.ring.woke();
    if (steady_clock::now() > deadline) {
      detach(s, "the daemon has not answered for 10 s");
      return false;
    }
  }
}

// The mover thread takes what has been decided and hands over what can be.
void run_round(Session& s) {
  std::unique_lock guard(s.lock);
  const std::uint64_t round = ++s.rounds_asked;
  s.asked.notify_one();
  s.answered.wait(guard, [&] { return s.rounds_done >= round || s.off.load() || s.ended; });
}

void step_together(Session& s, std::uint64_t sequence, bool new_marker) noexcept {
  try {
    const std::lock_guard guard(s.turn);
    if (!wait_decided(s, sequence)) {
      return;
    }
    if (s.ring.commands_waiting() || (new_marker && s.mover.waits_for_marker()) ||
        s.ring.lost() != s.announced_lost.load(std::memory_order_relaxed)) {
      run_round(s);
    }
  } catch (...) {
    detach(s, "lock-step failed");
  }
}

// A marker was recorded since the last round (lock-step only; one flag, since launching threads take turns).
std::atomic<bool> marker_recorded{false};

}  // namespace

void enter_device(CUdevice device) noexcept {
  if (settings().disabled || device < 0 || device >= DEEPUM_MAX_DEVICES) {
    return;
  }
  if (state.load(std::memory_order_acquire) == State::none) {
    join();
  }
  Session* s = current();
  if (s == nullptr) {
    return;
  }
  const std::uint32_t bit = 1u << device;
  if ((known_devices.fetch_or(bit) & bit) == 0) {
    announce_device(*s, device);
  }
}

std::uint64_t emit(deepum_event_header* record) noexcept {
  Session* s = current();
  if (s == nullptr || record->words < 2 || record->words > DEEPUM_MAX_EVENT_WORDS) {
    return 0;
  }
  const std::uint64_t sequence = s->ring.put(record);
  if (sequence == 0) {
    s->ring.wake_mover();  // it announces anew when there is room
  }
  if (!settings().lock_step) {
    s->ring.wake_daemon();
  }
  return sequence;
}

void before_execute(CUdevice, CUstream, std::uint32_t, std::uint64_t sequence) noexcept {
  if (!settings().lock_step || sequence == 0) {
    return;
  }
  if (Session* s = current(); s != nullptr) {
    step_together(*s, sequence, marker_recorded.exchange(false));
  }
}

void after_execute(CUdevice device, CUstream stream, std::uint32_t stream_id, std::uint64_t sequence) noexcept {
  Session* s = current();
  if (s == nullptr || !Markers::instance().launched(device, stream, stream_id, sequence)) {
    return;
  }
  if (settings().lock_step) {
    marker_recorded.store(true);
  } else if (s->mover.waits_for_marker()) {
    s->ring.wake_mover();
  }
}

void before_synchronise(std::uint32_t stream_id) noexcept {
  Session* s = current();
  if (s == nullptr) {
    return;
  }
  const bool recorded = Markers::instance().flush(stream_id);
  if (settings().lock_step) {
    step_together(*s, s->ring.last_sequence(), recorded || marker_recorded.exchange(false));
  } else if (recorded && s->mover.waits_for_marker()) {
    s->ring.wake_mover();
  }
}

void stream_destroyed(CUstream, std::uint32_t stream_id) noexcept { Markers::instance().forget(stream_id); }

void leave() noexcept {
  Session* s = session.exchange(nullptr);
  if (s == nullptr) {
    return;
  }
  state.store(State::without);
  s->stop.store(true);
  s->ring.say_left();
  s->ring.wake_mover();
  {
    // Bounded: the mover may be inside a driver call that an exiting process never comes back from.
    std::unique_lock guard(s->lock);
    s->asked.notify_all();
    s->answered.wait_for(guard, std::chrono::seconds(1), [&] { return s->ended; });
  }
  ::close(s->socket);
  // The session itself is left to the exit: a launch may still be inside it.
}

void abandon_in_child() noexcept {
  Markers::instance().abandon_in_child();
  known_devices.store(0);
  Session* s = session.exchange(nullptr);
  if (s == nullptr) {
    state.store(State::none);  // CUDA was not used before: the child may have a session of its own
    return;
  }
  state.store(State::without);
  ::close(s->socket);  // or the parent's session would not end with the parent
  s->ring.abandon();
}

}  // namespace deepum::runtime
