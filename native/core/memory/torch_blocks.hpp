// Names for PyTorch's blocks that are equal from step to step and from run to run.
//
// The caching allocator gives blocks of one size out in an order that depends on how they were
// split and merged before, so from one step to the next a tensor is found at another place although
// the program does the same. What repeats is the sequence of requests. So a block is named by its
// size and an ordinal, the lowest that no other live block of that size has. Sizes count in UM
// blocks: a remainder of up to 1 MiB is not split off, so one request is now answered with a little
// more, now with less.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

namespace deepum::core {

class TorchBlockNames {
 public:
  // CUDACachingAllocator's kSmallSize: up to there from the small pool.
  static constexpr std::uint64_t kMostSmallBytes = 1u << 20;

  // The lowest free ordinal among blocks of that size.
  std::uint32_t take(std::uint32_t device, std::uint64_t bytes) {
    Size& size = sizes_[key(device, bytes)];
    if (size.free.empty()) {
      return size.next++;
    }
    const std::uint32_t ordinal = size.free.top();
    size.free.pop();
    return ordinal;
  }
  void give_back(std::uint32_t device, std::uint64_t bytes, std::uint32_t ordinal) {
    sizes_[key(device, bytes)].free.push(ordinal);
  }

  static std::uint64_t name(std::uint32_t device, std::uint64_t bytes, std::uint32_t ordinal) {
    return mix(mix(key(device, bytes) ^ 0x50794254726f6368ull) + ordinal);
  }
  static std::uint64_t mix(std::uint64_t value) {  // splitmix64
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
  }

 private:
  struct Size {
    std::uint32_t next = 0;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
  };
  static std::uint64_t key(std::uint32_t device, std::uint64_t bytes) {
    return (bytes + (1u << 21) - 1) >> 21 << 8 | device;
  }
  std::unordered_map<std::uint64_t, Size> sizes_;  // looked up, never walked
};

}  // namespace deepum::core
