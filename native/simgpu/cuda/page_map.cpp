#include "page_map.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace deepum::simgpu {

bool read_page_map(std::uint64_t first, std::uint64_t count,
                   std::array<bool, kPagesAtOnce>& present) {
  static const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::array<std::uint64_t, kPagesAtOnce> entries;
  const auto wanted = static_cast<ssize_t>(count * sizeof(std::uint64_t));
  if (file < 0 || pread(file, entries.data(), static_cast<std::size_t>(wanted),
                        static_cast<off_t>(first / kPage * sizeof(std::uint64_t))) != wanted)
    return false;
  for (std::uint64_t i = 0; i < count; ++i) present[i] = (entries[i] >> 62) != 0;
  return true;
}

}  // namespace deepum::simgpu
