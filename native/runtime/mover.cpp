#include "mover.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "driver.hpp"
#include "message.hpp"
#include "relaxed.hpp"
#include "session.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint64_t kMostWaiting = 1u << 18;   // commands; the core keeps far fewer under way
constexpr long kHandoverPollNanoseconds = 500000;  // a 64 MiB hand-over takes 1 to 5 ms
constexpr long kEventPollNanoseconds = 100000;     // where this thread waits for what a move follows
constexpr std::int64_t kLookMilliseconds = 1000;

std::int64_t now_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

Mover::Mover(const SharedMemory& memory, MarkerTable& markers, LockStep& lock_step, Gates& gates, MoverListener& listener,
             const ShimSettings& settings)
    : memory_(memory),
      markers_(markers),
      lock_step_(lock_step),
      gates_(gates),
      listener_(listener),
      in_lock_step_(settings.lock_step),
      has_gates_(settings.gates && !settings.lock_step),
      handover_bytes_(settings.handover_bytes),
      settled_(std::make_unique<mover::SettledMoves>()),
      prefetches_(in_lock_step_ ? Deferral::kDefers : settings.deferral),
      discards_(in_lock_step_ || settings.deferral == Deferral::kDefers ? Deferral::kDefers : Deferral::kUnknown) {
  for (std::uint32_t device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    for (std::uint32_t direction = 0; direction < DEEPUM_DIRECTIONS; ++direction) {
      devices_[device].lanes[direction].ledger = mover::LaneLedger(mover::lane_id(device, direction));
    }
  }
}

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
  server_.stop(timeout_ms);
  return join_or_leave(thread_, timeout_ms);
}

std::uint32_t Mover::context_destroyed(CUcontext context) noexcept {
  std::uint32_t devices = 0;
  for (std::uint32_t device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    CUcontext expected = context;
    if (contexts_[device].compare_exchange_strong(expected, nullptr)) {
      devices |= 1u << device;
    }
  }
  server_.forget(context);
  for (auto& holds : threads_holds_) {
    for (std::atomic<CUevent>& hold : holds) {
      hold.store(nullptr);
    }
  }
  destroyed_.fetch_or(devices);
  return devices;
}

bool Mover::has_work() const noexcept {
  // What waits may go once there is a marker behind the latest launch, and a round records it.
  return written() != tried_.load(std::memory_order_acquire) || waiting_.load(std::memory_order_acquire) != 0;
}

void Mover::marker_recorded() noexcept {
  if (watches_markers_.load(std::memory_order_seq_cst) && watches_markers_.exchange(false)) {
    ring_eventfd(memory_.mover_fd);
  }
}

void Mover::run() noexcept {
  const Relaxed mode;
  prefetches_.begin();
  discards_.begin();
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
      carry_out();
      hold_launches();
      open_gates(decided);
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
    for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
      if (!(destroyed >> device & 1)) {
        continue;
      }
      for (MoveLane& lane : devices_[device].lanes) {
        lane.stream = nullptr;
        lane.ledger.forget_stream();
      }
      current_ = nullptr;
    }
  }
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  const std::uint64_t end = written();
  if (end - taken > DEEPUM_COMMAND_RING_BYTES || (end - taken) % sizeof(deepum_command) != 0) {
    listener_.daemon_gone("its commands are not to be understood");
    return;
  }
  while (taken != end) {
    const deepum_command command = memory_.commands[taken % DEEPUM_COMMAND_RING_BYTES / sizeof(deepum_command)];
    taken += sizeof(deepum_command);
    __atomic_store_n(&memory_.control->command_consumed, taken, __ATOMIC_RELEASE);
    accept(command);
  }
  taken_.store(taken, std::memory_order_release);
}

void Mover::accept(const deepum_command& given) {
  deepum_command command = given;
  if (brings(command) && !settings().prefetch) {
    command.block_count = 0;  // only waits
  }
  last_taken_ = std::max(last_taken_, command.id);
  if (command.kind == DEEPUM_COMMAND_HOLD) {
    settled_->settle(command.id, mover::SettledMoves::kNowhere);
    if (in_lock_step_ && command.device < DEEPUM_MAX_DEVICES && holds_.size() < DEEPUM_MAX_STREAMS) {
      holds_.push_back(command);
      holds_launches_ = true;
    }
    if (has_gates_) {
      hold_at_gate(command);
    }
    return;
  }
  if (command.device >= DEEPUM_MAX_DEVICES || waiting_.load(std::memory_order_relaxed) >= kMostWaiting) {
    settled_->settle(command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_CANCELLED);
    return;
  }
  const int direction = direction_of(command.kind);
  devices_[command.device].lanes[direction].queue.push(command);
  waiting_.fetch_add(1, std::memory_order_release);
  if (command.after_move == 0) {
    return;
  }
  for (Device& device : devices_) {
    for (MoveLane& lane : device.lanes) {
      if (mover::Move* awaited = lane.queue.find(command.after_move)) {
        awaited->awaited = true;
      }
    }
  }
}

bool Mover::may_sleep() const noexcept {
  if (stopping_.load() || destroyed_.load() != 0) {
    return false;
  }
  if (in_lock_step_) {
    return true;  // whoever wants something writes the eventfd
  }
  // A decision without commands that came during the round opens gates as well, and nobody rings for it: the thread did not sleep.
  return written() == taken_.load() && !(wants_marker_ && markers_.epoch() != seen_epoch_.load()) &&
         !(gated() && decided() != gates_.processed());
}

void Mover::sleep() noexcept {
  if (!in_lock_step_) {
    __atomic_store_n(&memory_.control->mover_sleeps, 1u, __ATOMIC_SEQ_CST);
    watches_markers_.store(wants_marker_, std::memory_order_seq_cst);
  }
  timespec limit{1, 0};
  if (looks_again_soon_) {
    limit = {0, prefetches_.deferral() == Deferral::kDefers ? kHandoverPollNanoseconds : kEventPollNanoseconds};
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
    const int got = ::eventfd_read(memory_.mover_fd, &count);
  }
  if (waits[1].revents && connection_->hung_up()) {
    listener_.daemon_gone("it is gone");
  }
}

// Seconds of silence are counted by looks a second apart, not by a clock: a program that was stopped has not waited.
void Mover::watch_daemon() noexcept {
  const std::int64_t now = now_ms();
  if (now - last_look_ms_ < kLookMilliseconds) {
    return;
  }
  last_look_ms_ = now;
  const std::uint64_t progress = listener_.events_taken();
  silent_looks_ = listener_.events_waiting() != 0 && progress == last_progress_ ? silent_looks_ + 1 : 0;
  last_progress_ = progress;
  if (silent_looks_ >= settings().daemon_silence) {
    listener_.daemon_gone(daemon_silent());
  }
}

}  // namespace deepum::runtime
