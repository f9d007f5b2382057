// The memory of native/wire/ring.h, made by the program: a memfd of sealed size, mapped, with its
// two eventfds.
#pragma once

#include <cstdint>

#include "records.h"
#include "ring.h"

namespace deepum::runtime {

// Not unmapped and its eventfds not closed while the process lives: a thread may be in the middle
// of an event.
struct SharedMemory {
  deepum_ring_control* control = nullptr;
  std::uint8_t* events = nullptr;
  const deepum_command* commands = nullptr;
  int memory_fd = -1;  // closed once the daemon has it
  int daemon_fd = -1;  // eventfd that wakes the daemon
  int mover_fd = -1;   // eventfd that wakes our mover

  bool create() noexcept;  // false: errno tells why; nothing is left open
  // Unmaps and closes everything; only when no other thread can be using it.
  void discard() noexcept;
};

void ring_eventfd(int fd) noexcept;  // wakes whoever waits for it; never blocks

}  // namespace deepum::runtime
