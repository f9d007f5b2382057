// Which allocations stay plain device memory although they are large: DEEPUM_PLAIN_MEMORY. By size,
// by the library that asks, or both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepum::runtime {

struct PlainRule {
  char library[64] = "";  // beginning of a file name, such as libnccl; empty: whoever asks
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;

  bool holds(std::uint64_t bytes) const noexcept { return bytes >= least && bytes <= most; }
};

// Begins with what communication libraries allocate: they hand out CUDA IPC handles of it or
// register it for GPUDirect.
class PlainRules {
 public:
  static constexpr std::size_t kMost = 32;  // those of the start included
  using Set = std::uint32_t;                // bit i: rule i
  static_assert(8 * sizeof(Set) >= kMost);

  PlainRules() noexcept;

  // `none`, `2MiB`, `2MiB-20MiB`, `64MiB-`, `-4MiB`, `libnccl`, `libucp:1MiB-`, with commas
  // between; added to those of the start, unless `none` is among them. False: unusable text, and
  // the rules are as they were.
  bool parse(const char* text) noexcept;

  // Whether a rule without a library holds.
  bool by_size(std::uint64_t bytes) const noexcept;
  // The rules with a library that hold if it is the right one.
  Set by_library(std::uint64_t bytes) const noexcept;
  // The rules that name this library. file: without folders. `libucp` names libucp.so.0 and
  // libucp-1.so, not libucps.so.
  Set naming(const char* file) const noexcept;

 private:
  bool add(const char* text, std::size_t length) noexcept;

  PlainRule rules_[kMost];
  std::size_t count_ = 0;
};

}  // namespace deepum::runtime
