// How much host memory allocations may spill to.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "devices.hpp"
#include "say.hpp"
#include "session.hpp"

namespace deepum::hooks {
namespace {

constexpr std::uint64_t kUnlimited = UINT64_MAX;

// The number of a file that holds just one; kUnlimited where there is none, or it says "max".
std::uint64_t number_in(const std::string& path) {
  unsigned long long number = kUnlimited;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%llu", &number) != 1) {
      number = kUnlimited;
    }
    std::fclose(file);
  }
  return number;
}

// What the control groups of the process leave it (cgroup v2, memory.max): beyond it the kernel kills, whatever the machine has.
std::uint64_t left_by_groups() {
  char line[4096];
  std::string group;
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
    while (std::fgets(line, sizeof line, file)) {
      if (std::strncmp(line, "0::/", 4) == 0) {
        group.assign(line + 3, std::strcspn(line + 3, "\n"));
      }
    }
    std::fclose(file);
  }
  std::uint64_t left = kUnlimited;
  while (true) {  // up to the root of what can be seen
    const std::string folder = "/sys/fs/cgroup" + (group == "/" ? "" : group);
    const std::uint64_t most = number_in(folder + "/memory.max");
    const std::uint64_t used = number_in(folder + "/memory.current");
    if (most != kUnlimited && used != kUnlimited) {
      left = std::min(left, most - std::min(most, used));
    }
    if (group.size() <= 1) {
      return left;
    }
    group.resize(std::max<std::size_t>(group.rfind('/'), 1));
  }
}

// Bytes; 0 where nobody tells.
std::uint64_t available() noexcept try {
  unsigned long long kilobytes = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    while (std::fgets(line, sizeof line, file) && std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1) {
      continue;
    }
    std::fclose(file);
  }
  return std::min<std::uint64_t>(kilobytes * 1024, left_by_groups());
} catch (...) {
  return 0;
}

std::uint64_t decide() noexcept {
  const std::uint64_t wanted = runtime::settings().host_memory;
  if (wanted != kUnlimited && runtime::settings().host_memory_is_virtual) {
    return wanted;
  }
  const std::uint64_t sound = available() / 10 * 9;
  if (wanted == kUnlimited || wanted <= sound || sound == 0) {
    return wanted == kUnlimited ? sound : wanted;
  }
  static std::atomic<bool> said{false};
  say_once(said,
           "deepum: warning: DEEPUM_HOST_MEMORY: %llu MiB are more than 90 %% of the host memory available, %llu MiB; these hold, free "
           "host memory for more\n",
           static_cast<unsigned long long>(wanted >> 20), static_cast<unsigned long long>(sound >> 20));
  return sound;
}

}  // namespace

std::uint64_t host_budget() noexcept {
  static std::atomic<std::uint64_t> budget{0};
  if (const std::uint64_t known = budget.load(std::memory_order_relaxed)) {
    return known;
  }
  std::uint64_t expected = 0;
  budget.compare_exchange_strong(expected, std::max<std::uint64_t>(decide(), 1));  // 0 means "not asked yet"
  return budget.load(std::memory_order_relaxed);
}

}  // namespace deepum::hooks
