// The producers' end of the event ring (native/wire/ring.h): any number of threads, no lock, no
// system call.
#pragma once

#include <cstdint>

#include "records.h"
#include "ring.h"
#include "shared_memory.hpp"

namespace deepum::runtime {

class EventRing {
 public:
  struct Place {
    std::uint64_t position = 0;
    std::uint64_t sequence = 0;  // 0: no room
  };

  void use(const SharedMemory& memory) noexcept { memory_ = memory; }

  // Takes room for a record of `words` words, padding included. Every place must be published.
  Place reserve(std::uint32_t words) noexcept;
  // Copies the record in, with its sequence. Returns true if the daemon sleeps and is the caller's
  // to wake (wake_daemon).
  bool publish(const Place& place, deepum_event_header* record) noexcept;
  void wake_daemon() noexcept { ring_eventfd(memory_.daemon_fd); }

  std::uint64_t free_bytes() const noexcept;
  std::uint64_t consumed() const noexcept {
    return __atomic_load_n(&memory_.control->event_consumed, __ATOMIC_ACQUIRE);
  }
  std::uint64_t reserved() const noexcept {
    return __atomic_load_n(&memory_.control->event_reserved, __ATOMIC_ACQUIRE);
  }

 private:
  SharedMemory memory_;
};

}  // namespace deepum::runtime
