#include "event_ring.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace deepum::runtime {
namespace {

constexpr std::size_t kBytes = DEEPUM_CONTROL_BYTES + DEEPUM_EVENT_RING_BYTES + DEEPUM_COMMAND_RING_BYTES;

template <typename T>
T load(const T& place, int order = __ATOMIC_ACQUIRE) noexcept {
  return __atomic_load_n(&place, order);
}
template <typename T>
void store(T& place, T value, int order = __ATOMIC_RELEASE) noexcept {
  __atomic_store_n(&place, value, order);
}

void write_one(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

void close_fd(int* fd) noexcept {
  if (*fd >= 0) {
    ::close(*fd);
  }
  *fd = -1;
}

}  // namespace

EventRing::~EventRing() { abandon(); }

bool EventRing::create() noexcept {
  memory_fd_ = ::memfd_create("deepum-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  daemon_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  mover_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (memory_fd_ < 0 || daemon_fd_ < 0 || mover_fd_ < 0 || ::ftruncate(memory_fd_, kBytes) != 0 ||
      ::fcntl(memory_fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return false;
  }
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd_, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  control_ = static_cast<deepum_ring_control*>(memory);
  events_ = static_cast<std::uint8_t*>(memory) + DEEPUM_CONTROL_BYTES;
  commands_ = events_ + DEEPUM_EVENT_RING_BYTES;
  std::memcpy(control_->magic, "DEEPUMRG", 8);
  control_->version = DEEPUM_WIRE_VERSION;
  control_->event_ring_bytes = DEEPUM_EVENT_RING_BYTES;
  control_->command_ring_bytes = DEEPUM_COMMAND_RING_BYTES;
  return true;
}

void EventRing::abandon() noexcept {
  if (control_ != nullptr) {
    ::munmap(control_, kBytes);
    control_ = nullptr;
  }
  close_fd(&memory_fd_);
  close_fd(&daemon_fd_);
  close_fd(&mover_fd_);
}

std::uint64_t EventRing::put(deepum_event_header* record) noexcept {
  const std::uint64_t bytes = std::uint64_t{record->words} * 8;
  std::uint64_t head = load(control_->event_reserved, __ATOMIC_RELAXED);
  std::uint64_t pad = 0;
  do {
    const std::uint64_t place = head % DEEPUM_EVENT_RING_BYTES;
    pad = place + bytes > DEEPUM_EVENT_RING_BYTES ? DEEPUM_EVENT_RING_BYTES - place : 0;
    // Acquire: what was consumed is zeroed before it counts as free.
    if (head + pad + bytes - load(control_->event_consumed) > DEEPUM_EVENT_RING_BYTES) {
      __atomic_fetch_add(&control_->events_lost, 1, __ATOMIC_RELAXED);
      return 0;
    }
  } while (!__atomic_compare_exchange_n(&control_->event_reserved, &head, head + pad + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  if (pad != 0) {
    const std::uint64_t word = pad / 8 | std::uint64_t{DEEPUM_EVENT_PAD} << 16;
    store(*reinterpret_cast<std::uint64_t*>(events_ + head % DEEPUM_EVENT_RING_BYTES), word);
  }
  const std::uint64_t position = head + pad;
  record->sequence = position / 8 + 1;
  std::uint8_t* place = events_ + position % DEEPUM_EVENT_RING_BYTES;
  std::memcpy(place + 8, reinterpret_cast<const std::uint8_t*>(record) + 8, bytes - 8);
  std::uint64_t first = 0;
  std::memcpy(&first, record, 8);
  store(*reinterpret_cast<std::uint64_t*>(place), first);
  last_sequence_.store(record->sequence, std::memory_order_relaxed);
  return record->sequence;
}

std::uint64_t EventRing::last_sequence() const noexcept { return last_sequence_.load(std::memory_order_relaxed); }

bool EventRing::half_empty() const noexcept {
  return load(control_->event_reserved) - load(control_->event_consumed) <= DEEPUM_EVENT_RING_BYTES / 2;
}

std::uint64_t EventRing::lost() const noexcept { return load(control_->events_lost, __ATOMIC_RELAXED); }

bool EventRing::commands_waiting() const noexcept { return load(control_->command_written) != command_consumed_; }

bool EventRing::take(deepum_command* command) noexcept {
  if (!commands_waiting()) {
    return false;
  }
  std::memcpy(command, commands_ + command_consumed_ % DEEPUM_COMMAND_RING_BYTES, sizeof *command);
  command_consumed_ += sizeof *command;
  store(control_->command_consumed, command_consumed_);
  return true;
}

std::uint64_t EventRing::decided() const noexcept { return load(control_->decided_sequence); }

void EventRing::wake_daemon() noexcept {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // the record before the flag, against prepare_sleep on the other end
  if (load(control_->daemon_sleeps, __ATOMIC_RELAXED) != 0) {
    store(control_->daemon_sleeps, 0U, __ATOMIC_RELAXED);
    write_one(daemon_fd_);
  }
}

void EventRing::wake_mover() noexcept { write_one(mover_fd_); }

bool EventRing::prepare_sleep(std::uint64_t decided_seen) noexcept {
  store(control_->mover_sleeps, 1U, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return decided() == decided_seen && !commands_waiting();
}

void EventRing::woke() noexcept {
  store(control_->mover_sleeps, 0U, __ATOMIC_RELAXED);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(mover_fd_, &count, sizeof count);
}

void EventRing::say_left() noexcept {
  store(control_->program_left, 1U);
  write_one(daemon_fd_);
}

}  // namespace deepum::runtime
