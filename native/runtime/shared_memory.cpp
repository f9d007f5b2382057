#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "descriptors.hpp"

namespace deepum::runtime {
namespace {

constexpr std::size_t kBytes =
    DEEPUM_CONTROL_BYTES + DEEPUM_EVENT_RING_BYTES + DEEPUM_COMMAND_RING_BYTES;
static_assert(sizeof(deepum_ring_control) <= DEEPUM_CONTROL_BYTES);
static_assert(DEEPUM_COMMAND_RING_BYTES % sizeof(deepum_command) == 0);

void close_fd(int* fd) noexcept {
  if (*fd >= 0) {
    ::close(*fd);
  }
  *fd = -1;
}

}  // namespace

bool SharedMemory::create() noexcept {
  memory_fd = ::memfd_create("deepum", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  daemon_fd = out_of_the_way(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  mover_fd = out_of_the_way(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  void* memory = MAP_FAILED;
  if (memory_fd >= 0 && daemon_fd >= 0 && mover_fd >= 0 && ::ftruncate(memory_fd, kBytes) == 0 &&
      ::fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
  }
  if (memory == MAP_FAILED) {
    const int kept = errno;
    discard();
    errno = kept;
    return false;
  }
  control = static_cast<deepum_ring_control*>(memory);
  events = static_cast<std::uint8_t*>(memory) + DEEPUM_CONTROL_BYTES;
  commands = reinterpret_cast<const deepum_command*>(events + DEEPUM_EVENT_RING_BYTES);
  std::memcpy(control->magic, "DEEPUMRG", 8);
  control->version = DEEPUM_WIRE_VERSION;
  control->event_ring_bytes = DEEPUM_EVENT_RING_BYTES;
  control->command_ring_bytes = DEEPUM_COMMAND_RING_BYTES;
  return true;
}

void SharedMemory::discard() noexcept {
  if (control) {
    ::munmap(control, kBytes);
  }
  control = nullptr;
  events = nullptr;
  commands = nullptr;
  close_fd(&memory_fd);
  close_fd(&daemon_fd);
  close_fd(&mover_fd);
}

void ring_eventfd(int fd) noexcept {
  const int kept = errno;
  [[maybe_unused]] const int written = ::eventfd_write(fd, 1);
  errno = kept;
}

}  // namespace deepum::runtime
