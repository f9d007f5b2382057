#include "mover.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <ctime>

#include "message.hpp"
#include "poll_intervals.hpp"
#include "relaxed.hpp"
#include "shim_settings.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

constexpr std::int64_t kLookMilliseconds = 1000;

std::int64_t now_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

mover::MoverOptions mover_options(const ShimSettings& settings) noexcept {
  mover::MoverOptions made;
  made.lock_step = settings.lock_step;
  made.gates = settings.gates && !settings.lock_step;
  made.fetches = settings.prefetch;
  made.handover_bytes = settings.handover_bytes;
  return made;
}

}  // namespace

Mover::Mover(const SharedMemory& memory, MarkerTable& markers, LockStep& lock_step, Gates& gates,
             MoverListener& listener, const ShimSettings& settings)
    : memory_(memory),
      markers_(markers),
      lock_step_(lock_step),
      gates_(gates),
      listener_(listener),
      in_lock_step_(settings.lock_step),
      backend_(markers, gates, settings),
      rules_(backend_, mover_options(settings)) {}

bool Mover::start(Connection* connection) noexcept {
  connection_ = connection;
  const auto body = [](void* self) -> void* {
    static_cast<Mover*>(self)->run();
    return nullptr;
  };
  return start_thread(&thread_, "deepum-mover", body, this);
}

void Mover::ask_to_stop() noexcept {
  stopping_.store(true);
  wake();
}

bool Mover::stop(int timeout_ms) noexcept {
  ask_to_stop();
  backend_.stop(timeout_ms);
  return join_or_leave(thread_, timeout_ms);
}

std::uint32_t Mover::context_destroyed(CUcontext context) noexcept {
  const std::uint32_t devices = backend_.context_destroyed(context);
  destroyed_.fetch_or(devices);
  return devices;
}

bool Mover::has_work() const noexcept {
  // What waits may go once there is a marker behind the latest launch, and a round records it.
  return written() != tried_.load(std::memory_order_acquire) ||
         waiting_.load(std::memory_order_acquire) != 0;
}

void Mover::marker_recorded() noexcept {
  if (watches_markers_.load(std::memory_order_seq_cst) && watches_markers_.exchange(false)) {
    ring_eventfd(memory_.mover_fd);
  }
}

void Mover::run() noexcept {
  const Relaxed mode;
  backend_.begin();
  try {
    loop();
  } catch (...) {
    listener_.daemon_gone("out of memory");
  }
  connection_->close();
}

void Mover::loop() {
  last_look_ms_ = now_ms();
  while (!stopping_.load()) {
    const bool due = !in_lock_step_ || lock_step_.begin_round();
    // Before the commands: those of all events up to it are there then.
    const std::uint64_t decided = this->decided();
    take_commands();
    if (due) {
      const std::uint64_t epoch = markers_.epoch();
      rules_.round(decided);
      note_waiting();
      // Only now: whoever reads these and finds nothing left to do goes on at once.
      seen_epoch_.store(epoch, std::memory_order_release);
      tried_.store(taken_.load(std::memory_order_relaxed), std::memory_order_release);
    }
    if (in_lock_step_) {
      lock_step_.end_round(due);
    }
    listener_.recover_lost_events();
    sleep();
    watch_daemon();
  }
}

void Mover::take_commands() {
  if (const std::uint32_t destroyed = destroyed_.exchange(0)) {
    for (std::uint32_t device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
      if ((destroyed >> device & 1) != 0) {
        backend_.forget_streams(device);
        rules_.forget_streams(device);
      }
    }
  }
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  const std::uint64_t end = written();
  if (end - taken > DEEPUM_COMMAND_RING_BYTES || (end - taken) % sizeof(deepum_command) != 0) {
    listener_.daemon_gone("its commands are not to be understood");
    return;
  }
  while (taken != end) {
    const deepum_command command =
        memory_.commands[taken % DEEPUM_COMMAND_RING_BYTES / sizeof(deepum_command)];
    taken += sizeof(deepum_command);
    __atomic_store_n(&memory_.control->command_consumed, taken, __ATOMIC_RELEASE);
    rules_.accept(command);
  }
  note_waiting();
  taken_.store(taken, std::memory_order_release);
}

void Mover::note_waiting() noexcept {
  waiting_.store(rules_.waiting(), std::memory_order_release);
  __atomic_store_n(&memory_.control->moves_waiting, rules_.waiting(), __ATOMIC_RELAXED);
}

bool Mover::may_sleep() const noexcept {
  if (stopping_.load() || destroyed_.load() != 0) {
    return false;
  }
  if (in_lock_step_) {
    return true;  // whoever wants something writes the eventfd
  }
  // A decision without commands that came during the round opens gates as well, and nobody rings
  // for it: the thread did not sleep.
  return written() == taken_.load() &&
         !(rules_.wants_marker() && markers_.epoch() != seen_epoch_.load()) &&
         !(gates_.used() && decided() != gates_.processed());
}

void Mover::sleep() noexcept {
  if (!in_lock_step_) {
    __atomic_store_n(&memory_.control->mover_sleeps, 1u, __ATOMIC_SEQ_CST);
    watches_markers_.store(rules_.wants_marker(), std::memory_order_seq_cst);
  }
  timespec limit{1, 0};
  if (rules_.looks_again_soon()) {
    limit = {0, backend_.polls_events() ? mover::kEventPollNanoseconds
                                        : mover::kHandoverPollNanoseconds};
  }
  if (!may_sleep()) {
    limit = {0, 0};
  }
  pollfd waits[2] = {{memory_.mover_fd, POLLIN, 0}, {connection_->fd(), POLLIN, 0}};
  const int ready = ::ppoll(waits, 2, &limit, nullptr);
  __atomic_store_n(&memory_.control->mover_sleeps, 0u, __ATOMIC_SEQ_CST);
  watches_markers_.store(false, std::memory_order_relaxed);
  if (ready <= 0) {
    return;
  }
  eventfd_t count;
  if (waits[0].revents) {
    [[maybe_unused]]
    const int error = ::eventfd_read(memory_.mover_fd, &count);
  }
  if (waits[1].revents && connection_->hung_up()) {
    listener_.daemon_gone("it is gone");
  }
}

// Seconds of silence are counted by looks a second apart, not by a clock: a program that was
// stopped has not waited.
void Mover::watch_daemon() noexcept {
  const std::int64_t now = now_ms();
  if (now - last_look_ms_ < kLookMilliseconds) {
    return;
  }
  last_look_ms_ = now;
  const std::uint64_t progress = listener_.events_taken();
  silent_looks_ =
      listener_.events_waiting() != 0 && progress == last_progress_ ? silent_looks_ + 1 : 0;
  last_progress_ = progress;
  if (silent_looks_ >= settings().daemon_silence) {
    listener_.daemon_gone(daemon_silent());
  }
}

}  // namespace deepum::runtime
