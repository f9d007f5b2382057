// How much host memory allocations may spill to.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "devices.hpp"
#include "say.hpp"
#include "shim_settings.hpp"

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

// The value of a line "KEY VALUE"; 0 where there is none.
std::uint64_t value_in(const std::string& path, const char* key) {
  unsigned long long found = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char line[256];
    char name[64];
    unsigned long long value = 0;
    while (std::fgets(line, sizeof line, file)) {
      if (std::sscanf(line, "%63s %llu", name, &value) == 2 && std::strcmp(name, key) == 0) {
        found = value;
      }
    }
    std::fclose(file);
  }
  return found;
}

// How the two versions of control groups tell (kernel: admin-guide/cgroup-v2.rst,
// cgroup-v1/memory.rst).
struct Version {
  const char* entry;  // of /proc/self/cgroup, behind the number
  const char* root;
  const char* most;
  const char* used;
  const char* reclaimable;  // of memory.stat: file pages that the kernel drops before it kills
};
constexpr Version kVersions[] = {
    {"::/", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"},
    {":memory:/", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file"},
};

std::string group_of_process(const Version& version) {
  std::string group;
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
    char line[4096];
    while (std::fgets(line, sizeof line, file)) {
      const char* const entry = std::strchr(line, ':');
      if (entry && std::strncmp(entry, version.entry, std::strlen(version.entry)) == 0) {
        const char* const path = entry + std::strlen(version.entry) - 1;
        group.assign(path, std::strcspn(path, "\n"));
      }
    }
    std::fclose(file);
  }
  return group;
}

// What the control groups of the process leave it: beyond it the kernel kills, whatever the machine
// has.
std::uint64_t left_by_groups(const Version& version) {
  std::string group = group_of_process(version);
  std::uint64_t left = kUnlimited;
  while (true) {  // up to the root of what can be seen
    const std::string folder = version.root + (group == "/" ? "" : group);
    const std::uint64_t most = number_in(folder + version.most);
    const std::uint64_t used = number_in(folder + version.used);
    if (most != kUnlimited && used != kUnlimited) {
      const std::uint64_t kept =
          used - std::min(used, value_in(folder + "/memory.stat", version.reclaimable));
      left = std::min(left, most - std::min(most, kept));
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
    while (std::fgets(line, sizeof line, file) &&
           std::sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1) {
      continue;
    }
    std::fclose(file);
  }
  std::uint64_t bytes = kilobytes * 1024;
  for (const Version& version : kVersions) {
    bytes = std::min(bytes, left_by_groups(version));
  }
  return bytes;
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
  static std::atomic<bool> warned{false};
  say_once(warned,
           "deepum: warning: DEEPUM_HOST_MEMORY: %llu MiB are more than 90 %% of the host memory "
           "available, %llu MiB; these hold, free "
           "host memory for more\n",
           static_cast<unsigned long long>(wanted >> 20),
           static_cast<unsigned long long>(sound >> 20));
  return sound;
}

}  // namespace

std::uint64_t host_budget() noexcept {
  static std::atomic<std::uint64_t> budget{0};
  if (const std::uint64_t known = budget.load(std::memory_order_relaxed)) {
    return known;
  }
  std::uint64_t expected = 0;
  // 0 means "not asked yet".
  budget.compare_exchange_strong(expected, std::max<std::uint64_t>(decide(), 1));
  return budget.load(std::memory_order_relaxed);
}

}  // namespace deepum::hooks
