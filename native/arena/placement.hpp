// Buffers that are placed one after the other, each where it fits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"

namespace deepum::arena {

class Placement {
 public:
  // None is below `base`.
  explicit Placement(const Problem& problem, std::int64_t base = 0)
      : problem_(problem), base_(base) {}

  // Returns the offset that the buffer got.
  std::int64_t place(std::int32_t index, deepum_arena_fit fit);
  std::int64_t height() const { return height_; }

 private:
  struct Placed {
    std::int32_t begin;
    std::int32_t end;
    std::int64_t offset;
    std::int64_t top;
  };

  std::int64_t where(const Buffer& buffer, deepum_arena_fit fit) const;

  const Problem& problem_;
  std::int64_t base_;
  std::int64_t height_ = 0;
  std::vector<Placed> placed_;  // by offset
};

// The height that these offsets need; -1 where they cannot be.
std::int64_t height(const Problem& problem, std::span<const std::int64_t> offsets);

}  // namespace deepum::arena
