// The program's end of the shared memory: many threads put events in, the mover takes commands out (native/wire/ring.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "records.h"
#include "ring.h"

namespace deepum::runtime {

class EventRing {
 public:
  EventRing() = default;
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;
  ~EventRing();

  // Makes the memory (a memfd of sealed size) and the two eventfds. False: errno says why.
  bool create() noexcept;
  // In a fork's child: lets go of the descriptors, not of the parent's session.
  void abandon() noexcept;

  // The record's sequence, or 0: full, and counted as lost. Lock-free.
  std::uint64_t put(deepum_event_header* record) noexcept;
  std::uint64_t last_sequence() const noexcept;  // of a record put last; with several threads, of one of the last
  bool half_empty() const noexcept;
  std::uint64_t lost() const noexcept;

  bool take(deepum_command* command) noexcept;  // one consumer at a time
  bool commands_waiting() const noexcept;
  std::uint64_t decided() const noexcept;

  void wake_daemon() noexcept;  // if it sleeps
  void wake_mover() noexcept;   // always
  // The way to sleep for the consumer of commands: true: wait for mover_fd(), unless it is found that there is work; then woke().
  bool prepare_sleep(std::uint64_t decided_seen) noexcept;
  void woke() noexcept;
  void say_left() noexcept;

  int memory_fd() const noexcept { return memory_fd_; }
  int daemon_fd() const noexcept { return daemon_fd_; }
  int mover_fd() const noexcept { return mover_fd_; }

 private:
  deepum_ring_control* control_ = nullptr;
  std::uint8_t* events_ = nullptr;
  const std::uint8_t* commands_ = nullptr;
  std::atomic<std::uint64_t> last_sequence_{0};
  std::uint64_t command_consumed_ = 0;
  int memory_fd_ = -1, daemon_fd_ = -1, mover_fd_ = -1;
};

}  // namespace deepum::runtime
