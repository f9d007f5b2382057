#include "jumps.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace deepum::simgpu::cudart {
namespace {

// A jump to anywhere: an instruction or two, and the address.
#if defined(__x86_64__)
constexpr std::size_t kFarBytes = 16;
constexpr std::int64_t kReach = (std::int64_t{1} << 31) - (1 << 20);

void write_far(std::byte* place, const void* to) noexcept {
  constexpr unsigned char kIndirect[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
  std::memcpy(place, kIndirect, sizeof kIndirect);
  std::memcpy(place + sizeof kIndirect, static_cast<const void*>(&to), sizeof to);
}

void write_near(std::byte* entry, const std::byte* to) noexcept {
  const auto offset = static_cast<std::int32_t>(to - (entry + kJumpBytes));
  entry[0] = std::byte{0xe9};
  std::memcpy(entry + 1, &offset, sizeof offset);
}
#elif defined(__aarch64__)
constexpr std::size_t kFarBytes = 16;
constexpr std::int64_t kReach = (std::int64_t{1} << 27) - (1 << 20);

void write_far(std::byte* place, const void* to) noexcept {
  constexpr std::uint32_t kIndirect[] = {0x58000050, 0xd61f0200};  // ldr x16, 8; br x16
  std::memcpy(place, kIndirect, sizeof kIndirect);
  std::memcpy(place + sizeof kIndirect, static_cast<const void*>(&to), sizeof to);
}

void write_near(std::byte* entry, const std::byte* to) noexcept {
  const std::uint32_t code =
      0x14000000 | (static_cast<std::uint32_t>((to - entry) / 4) & 0x3ffffff);
  std::memcpy(entry, &code, sizeof code);
}
#endif

// Downwards from the code first: behind an executable its heap grows.
std::byte* map_near(std::uintptr_t first, std::uintptr_t last, std::size_t bytes) noexcept {
  constexpr std::uintptr_t kLowest = 1 << 16, kStep = 1 << 20, kAbove = 1 << 30;
  const auto page = static_cast<std::uintptr_t>(getpagesize());
  const auto take = [&](std::uintptr_t address) -> std::byte* {
    void* const wanted = reinterpret_cast<void*>(address & ~(page - 1));
    void* const mapping = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    if (mapping == wanted) return static_cast<std::byte*>(mapping);
    munmap(mapping, bytes);  // a kernel before 4.17, which takes the address as advice
    return nullptr;
  };
  const auto reach = static_cast<std::uintptr_t>(kReach);
  for (std::uintptr_t below = bytes + page;
       below < reach && last - first + below < reach && first >= below + kLowest; below += kStep) {
    if (std::byte* const mapping = take(first - below)) return mapping;
  }
  for (std::uintptr_t above = std::min(kAbove, reach / 2); last - first + above + bytes < reach;
       above += kStep) {
    if (std::byte* const mapping = take(last + above)) return mapping;
  }
  return nullptr;
}

}  // namespace

const char* write_jumps(const std::vector<Jump>& jumps) noexcept {
  if (jumps.empty()) return nullptr;
  const auto page = static_cast<std::uintptr_t>(getpagesize());
  const auto [lowest, highest] = std::minmax_element(
      jumps.begin(), jumps.end(), [](const Jump& a, const Jump& b) { return a.entry < b.entry; });
  const auto first = reinterpret_cast<std::uintptr_t>(lowest->entry) & ~(page - 1);
  const std::uintptr_t last =
      (reinterpret_cast<std::uintptr_t>(highest->entry) + kJumpBytes + page - 1) & ~(page - 1);
  const std::size_t bytes = (jumps.size() * kFarBytes + page - 1) & ~(page - 1);
  std::byte* const far = map_near(first, last, bytes);
  if (far == nullptr) return "no memory is free near its code";
  void* const code = reinterpret_cast<void*>(first);
  // With the right to run it meanwhile: other functions in these pages may be running.
  if (mprotect(code, last - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    munmap(far, bytes);
    return "the system does not let its code be changed";
  }
  for (std::size_t i = 0; i < jumps.size(); ++i) write_far(far + i * kFarBytes, jumps[i].to);
  mprotect(far, bytes, PROT_READ | PROT_EXEC);
  for (std::size_t i = 0; i < jumps.size(); ++i) write_near(jumps[i].entry, far + i * kFarBytes);
  mprotect(code, last - first, PROT_READ | PROT_EXEC);
  __builtin___clear_cache(reinterpret_cast<char*>(first), reinterpret_cast<char*>(last));
  __builtin___clear_cache(reinterpret_cast<char*>(far), reinterpret_cast<char*>(far + bytes));
  return nullptr;
}

}  // namespace deepum::simgpu::cudart
