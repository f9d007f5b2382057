#include "descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace deepum::runtime {
namespace {

constexpr int kLowest = 700;  // most processes may have 1024

}  // namespace

int out_of_the_way(int fd) noexcept {
  const int kept = errno;
  const int moved = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, kLowest);
  if (moved >= 0) {
    ::close(fd);
  }
  errno = kept;
  return moved >= 0 ? moved : fd;
}

}  // namespace deepum::runtime
