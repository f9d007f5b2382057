// Buffers with lifetimes, in sections: stretches of time in which nothing begins or ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arena.h"

namespace deepum::arena {

// Sections [begin, end), and bytes.
struct Buffer {
  std::int32_t begin;
  std::int32_t end;
  std::int64_t size;
  std::int64_t alignment;
  std::int64_t lifetime;  // as it was given

  bool lives_at(std::int32_t section) const { return begin <= section && section < end; }
  bool lives_with(const Buffer& other) const { return begin < other.end && other.begin < end; }
};

inline std::int64_t aligned(std::int64_t offset, std::int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

class Problem {
 public:
  // Nothing where the numbers cannot be used (deepum_arena_create).
  static std::optional<Problem> make(std::span<const deepum_arena_buffer> buffers);

  std::size_t size() const { return buffers_.size(); }
  const Buffer& operator[](std::int32_t index) const { return buffers_[index]; }
  std::int32_t sections() const { return static_cast<std::int32_t>(loads_.size()); }
  std::span<const std::int64_t> loads() const { return loads_; }  // bytes, by section
  std::int64_t load() const { return load_; }
  std::int64_t overlap() const { return overlap_; }

 private:
  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> loads_;
  std::int64_t load_ = 0;
  std::int64_t overlap_ = 0;
};

}  // namespace deepum::arena
