#include "mover.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "driver.hpp"
#include "message.hpp"
#include "session.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint64_t kMostWaiting = 1u << 18;   // commands; the core keeps far fewer under way
constexpr std::uint32_t kMostFailures = 16;        // in a row
constexpr long kHandoverPollNanoseconds = 500000;  // a 64 MiB hand-over takes 1 to 5 ms
constexpr std::int64_t kLookMilliseconds = 1000;
constexpr int kMostSilentLooks = 10;

std::int64_t now_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

int direction_of(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_PREFETCH || command.kind == DEEPUM_COMMAND_ADVISE ? DEEPUM_DIRECTION_IN : DEEPUM_DIRECTION_OUT;
}

bool known_kind(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_PREFETCH || command.kind == DEEPUM_COMMAND_EVICT || command.kind == DEEPUM_COMMAND_ADVISE;
}

}  // namespace

Mover::Mover(const SharedMemory& memory, MarkerTable& markers, LockStep& lock_step, MoverListener& listener, bool in_lock_step,
             std::uint64_t handover_bytes)
    : memory_(memory),
      markers_(markers),
      lock_step_(lock_step),
      listener_(listener),
      in_lock_step_(in_lock_step),
      handover_bytes_(handover_bytes),
      settled_(std::make_unique<SettledMoves>()) {}

bool Mover::start(Connection* connection) noexcept {
  connection_ = connection;
  // The program's signals are for the program's threads.
  sigset_t all, kept;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &kept);
  const auto body = [](void* self) -> void* {
    static_cast<Mover*>(self)->run();
    return nullptr;
  };
  const bool started = ::pthread_create(&thread_, nullptr, body, this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &kept, nullptr);
  if (started) ::pthread_setname_np(thread_, "deepum-mover");
  return started;
}

void Mover::ask_to_stop() noexcept {
  stopping_.store(true);
  ring_eventfd(memory_.mover_fd);
}

bool Mover::stop(int timeout_ms) noexcept {
  ask_to_stop();
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += timeout_ms / 1000;
  until.tv_nsec += timeout_ms % 1000 * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    ++until.tv_sec;
  }
  if (::pthread_timedjoin_np(thread_, nullptr, &until) == 0) return true;
  ::pthread_detach(thread_);
  return false;
}

std::uint32_t Mover::context_destroyed(CUcontext context) noexcept {
  std::uint32_t devices = 0;
  for (std::uint32_t device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    CUcontext expected = context;
    if (contexts_[device].compare_exchange_strong(expected, nullptr)) devices |= 1u << device;
  }
  destroyed_.fetch_or(devices);
  return devices;
}

bool Mover::has_work() const noexcept {
  return written() != tried_.load(std::memory_order_acquire) ||
         (waiting_.load(std::memory_order_acquire) != 0 && markers_.epoch() != seen_epoch_.load(std::memory_order_acquire));
}

void Mover::marker_recorded() noexcept {
  if (watches_markers_.load(std::memory_order_seq_cst) && watches_markers_.exchange(false)) ring_eventfd(memory_.mover_fd);
}

void Mover::run() noexcept {
  if (driver().ThreadExchangeStreamCaptureMode) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    driver().ThreadExchangeStreamCaptureMode(&mode);
  }
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
    take_commands();
    if (due) {
      const std::uint64_t epoch = markers_.epoch();
      carry_out();
      // Only now: whoever reads these and finds nothing left to do goes on at once.
      seen_epoch_.store(epoch, std::memory_order_release);
      tried_.store(taken_.load(std::memory_order_relaxed), std::memory_order_release);
    }
    if (in_lock_step_) lock_step_.end_round(due);
    listener_.recover_lost_events();
    sleep();
    watch_daemon();
  }
}

void Mover::take_commands() {
  if (const std::uint32_t destroyed = destroyed_.exchange(0)) {
    for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
      if (!(destroyed >> device & 1)) continue;
      for (MoveLane& lane : devices_[device].lanes) lane.forget_stream();
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

void Mover::accept(const deepum_command& command) {
  last_taken_ = std::max(last_taken_, command.id);
  if (command.device >= DEEPUM_MAX_DEVICES || waiting_.load(std::memory_order_relaxed) >= kMostWaiting) {
    settled_->settle(command.id, SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_CANCELLED);
    return;
  }
  const int direction = direction_of(command);
  devices_[command.device].lanes[direction].queue.push(command);
  waiting_.fetch_add(1, std::memory_order_release);
  if (command.after_move == 0) return;
  for (Device& device : devices_) {
    if (Move* awaited = device.lanes[1 - direction].queue.find(command.after_move)) awaited->awaited = true;
  }
}

// What goes out makes the room for what comes in.
void Mover::carry_out() {
  wants_marker_ = handover_full_ = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
      for (const int direction : {DEEPUM_DIRECTION_OUT, DEEPUM_DIRECTION_IN}) {
        if (!devices_[device].lanes[direction].queue.empty()) progress |= advance(device, direction);
      }
    }
  }
}

// As far as this direction can go now. True: something became of at least one command.
bool Mover::advance(int device, int direction) {
  MoveLane& lane = devices_[device].lanes[direction];
  bool progress = false;
  while (!lane.queue.empty()) {
    const deepum_command command = lane.queue[0].command;
    if (off_ || !known_kind(command)) {
      finish(lane, command.id, SettledMoves::kNowhere);
      answer(command, DEEPUM_MOVED_CANCELLED);
    } else if (!issue(device, direction)) {
      return progress;
    }
    progress = true;
  }
  return progress;
}

// The first command of the queue, with those behind it that can go along. False: it has to stay.
bool Mover::issue(int device, int direction) {
  MoveLane& lane = devices_[device].lanes[direction];
  const deepum_command head = lane.queue[0].command;
  Requirements required;
  if (!requirements(device, direction, head, &required)) return false;

  std::vector<Span> spans;
  std::vector<Allocations::Pin> pins;
  pins.push_back(Allocations::instance().pin(head.slot, head.generation, head.first_block, head.block_count));
  if (!pins[0]) {
    finish(lane, head.id, SettledMoves::kNowhere);
    answer(head, DEEPUM_MOVED_STALE);
    return true;
  }
  spans.push_back({pins[0].address, pins[0].bytes});
  if (!in_lock_step_ && lane.outstanding() != 0 && lane.outstanding() + pins[0].bytes > handover_bytes_) {
    lane.collect();
    if (lane.outstanding() != 0 && lane.outstanding() + pins[0].bytes > handover_bytes_) {
      handover_full_ = true;
      return false;
    }
  }

  bool again = false;
  const bool usable = use_device(device) && lane.prepare() && wait_for(lane, required, &again);
  if (again) return true;  // a marker went on while we waited for it
  std::size_t commands = 1;
  CUresult result = usable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (usable && head.kind == DEEPUM_COMMAND_ADVISE) {
    // Takes effect at once: the driver has no advice in stream order.
    result = advise(spans[0], static_cast<CUmem_advise>(head.advice), head.location < 0 ? kHost : head.location);
  } else if (usable) {
    commands = gather(device, direction, &spans, &pins);
    result = prefetch(spans.data(), spans.size(), direction == DEEPUM_DIRECTION_IN ? device : kHost, lane.stream());
  }
  if (result != CUDA_SUCCESS) count_failure(result);
  if (result == CUDA_SUCCESS) failures_in_a_row_ = 0;

  std::uint64_t bytes = 0;
  for (const Allocations::Pin& pin : pins) bytes += pin.bytes;
  bool awaited = false;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < commands; ++i) {
    const Move move = lane.queue[0];
    last = move.command.id;
    awaited |= move.awaited;
    finish(lane, last, result == CUDA_SUCCESS && head.kind != DEEPUM_COMMAND_ADVISE ? device : SettledMoves::kNowhere);
    if (result != CUDA_SUCCESS) answer(move.command, DEEPUM_MOVED_FAILED, result);
  }
  if (result != CUDA_SUCCESS || head.kind == DEEPUM_COMMAND_ADVISE) return true;
  lane.issued(last, in_lock_step_ ? 0 : bytes);
  if (awaited || (!in_lock_step_ && lane.unrecorded() >= handover_bytes_ / 16)) lane.record(last);
  return true;
}

// Commands right behind the first that need nothing more to wait for, and which nobody waits for before their end: adjacent ones
// become one span, others one call where the driver has batches. Returns how many go, the first included.
std::size_t Mover::gather(int device, int direction, std::vector<Span>* spans, std::vector<Allocations::Pin>* pins) {
  MoveLane& lane = devices_[device].lanes[direction];
  const std::uint8_t kind = lane.queue[0].command.kind;
  std::uint64_t bytes = (*pins)[0].bytes;
  std::size_t count = 1;
  for (; count < lane.queue.size() && pins->size() < 4 * kMostInBatch; ++count) {
    const deepum_command& next = lane.queue[count].command;
    Requirements more;
    if (lane.queue[count - 1].awaited || next.kind != kind || !requirements(device, direction, next, &more) || !more.empty()) break;
    auto pin = Allocations::instance().pin(next.slot, next.generation, next.first_block, next.block_count);
    if (!pin || (!in_lock_step_ && lane.outstanding() + bytes + pin.bytes > handover_bytes_)) break;
    Span& last = spans->back();
    if (last.address + last.bytes == pin.address) {
      last.bytes += pin.bytes;
    } else if (has_batches() && spans->size() < kMostInBatch) {
      spans->push_back({pin.address, pin.bytes});
    } else {
      break;
    }
    bytes += pin.bytes;
    pins->push_back(std::move(pin));
  }
  return count;
}

// What the lane still has to wait for. False: it does not exist yet.
bool Mover::requirements(int device, int direction, const deepum_command& command, Requirements* found) {
  MoveLane& lane = devices_[device].lanes[direction];
  for (std::uint64_t mask = command.after_sequence ? command.stream_mask : 0; mask != 0; mask &= mask - 1) {
    const auto stream = static_cast<std::uint32_t>(__builtin_ctzll(mask));
    const bool covered = markers_.cover(stream, command.after_sequence, [&](StreamMarkers& of, const Marker& marker) {
      if (!lane.waited(&of, marker)) found->markers.emplace_back(&of, marker);
    });
    if (!covered) {
      markers_.want(stream);
      wants_marker_ = true;
      return false;
    }
  }
  // A command can only follow an earlier one.
  if (command.after_move == 0 || command.after_move >= command.id) return true;
  for (Device& each : devices_) {
    if (each.lanes[1 - direction].queue.find(command.after_move)) return false;
  }
  const int where = settled_->device(command.after_move);
  if (where == SettledMoves::kNowhere) return true;
  MoveLane& other = devices_[where == SettledMoves::kLongAgo ? device : where].lanes[1 - direction];
  if (lane.waited(&other, command.after_move)) return true;
  found->other = &other;
  found->other_id = command.after_move;
  return true;
}

bool Mover::wait_for(MoveLane& lane, const Requirements& required, bool* again) {
  for (const auto& [of, marker] : required.markers) {
    if (!lane.wait(marker)) return false;
    // Recorded anew in the meantime: behind later launches, or even on another stream that has the id now.
    if (!of->still(marker)) {
      *again = true;
      return false;
    }
    lane.note(of, marker);
  }
  return !required.other || lane.wait(required.other, required.other_id);
}

bool Mover::use_device(int device) noexcept {
  const CUcontext context = contexts_[device].load(std::memory_order_acquire);
  if (!context) return false;
  if (current_ != context) {
    if (!driver().CtxSetCurrent || driver().CtxSetCurrent(context) != CUDA_SUCCESS) return false;
    current_ = context;
  }
  return true;
}

void Mover::finish(MoveLane& lane, std::uint64_t id, int device) {
  settled_->settle(id, device);
  lane.queue.pop();
  waiting_.fetch_sub(1, std::memory_order_release);
}

void Mover::answer(const deepum_command& command, deepum_moved_status status, CUresult error) noexcept {
  deepum_moved_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_MOVED;
  event.header.device = command.device;
  event.command = command.id;
  event.status = status;
  event.error = static_cast<std::uint32_t>(error);
  emit(&event.header);
}

void Mover::count_failure(CUresult error) noexcept {
  if (++failures_in_a_row_ < kMostFailures || off_) return;
  off_ = true;
  // At a program's end its context goes first: nothing worth a word.
  if (error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_CONTEXT_IS_DESTROYED) return;
  say(Level::kWarning, "warning: mover: %u moves in a row failed (CUDA error %d); going on without prefetching", kMostFailures, error);
}

bool Mover::may_sleep() const noexcept {
  if (stopping_.load() || destroyed_.load() != 0) return false;
  if (in_lock_step_) return true;  // whoever wants something writes the eventfd
  return written() == taken_.load() && !(wants_marker_ && markers_.epoch() != seen_epoch_.load());
}

void Mover::sleep() noexcept {
  if (!in_lock_step_) {
    __atomic_store_n(&memory_.control->mover_sleeps, 1u, __ATOMIC_SEQ_CST);
    watches_markers_.store(wants_marker_, std::memory_order_seq_cst);
  }
  timespec limit{1, 0};
  if (handover_full_) limit = {0, kHandoverPollNanoseconds};
  if (!may_sleep()) limit = {0, 0};
  pollfd waits[2] = {{memory_.mover_fd, POLLIN, 0}, {connection_->fd(), POLLIN, 0}};
  const int ready = ::ppoll(waits, 2, &limit, nullptr);
  __atomic_store_n(&memory_.control->mover_sleeps, 0u, __ATOMIC_SEQ_CST);
  watches_markers_.store(false, std::memory_order_relaxed);
  if (ready <= 0) return;
  eventfd_t count;
  if (waits[0].revents) [[maybe_unused]]
    const int got = ::eventfd_read(memory_.mover_fd, &count);
  if (waits[1].revents && connection_->hung_up()) listener_.daemon_gone("it is gone");
}

// Seconds of silence are counted by looks a second apart, not by a clock: a program that was stopped has not waited.
void Mover::watch_daemon() noexcept {
  const std::int64_t now = now_ms();
  if (now - last_look_ms_ < kLookMilliseconds) return;
  last_look_ms_ = now;
  const std::uint64_t progress = listener_.events_taken();
  silent_looks_ = listener_.events_waiting() != 0 && progress == last_progress_ ? silent_looks_ + 1 : 0;
  last_progress_ = progress;
  if (silent_looks_ >= kMostSilentLooks) listener_.daemon_gone("it has been silent for 10 s");
}

}  // namespace deepum::runtime
