// A range of UM blocks as records carry it, in its parts. Definitions only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "records.h"

namespace deepum {

struct RangeParts {
  std::uint32_t slot, first, count;
};

inline RangeParts parts(deepum_block_range range) noexcept {
  return {static_cast<std::uint32_t>(range >> DEEPUM_RANGE_SLOT_SHIFT),
          static_cast<std::uint32_t>(range >> DEEPUM_RANGE_FIRST_SHIFT) &
              ((1u << DEEPUM_RANGE_FIRST_BITS) - 1),
          static_cast<std::uint32_t>(range) & ((1u << DEEPUM_RANGE_COUNT_BITS) - 1)};
}

// Ranges that lie behind the launch, and behind them the bits of those that are only read.
inline std::size_t ranges_of(const deepum_execute_event& launch) noexcept {
  return std::size_t{launch.write_ranges} + launch.read_ranges + launch.unknown_ranges;
}

// Whether a range of the launch, by its place, is known to be only read: by itself, or declared.
inline bool only_reads(const deepum_execute_event& launch, std::size_t place) noexcept {
  const std::size_t known = std::size_t{launch.write_ranges} + launch.read_ranges;
  if (place < known) {
    return place >= launch.write_ranges;
  }
  const auto* const declared =
      reinterpret_cast<const std::uint64_t*>(&launch + 1) + ranges_of(launch);
  const std::size_t bit = place - known;
  return bit / 64 < launch.declared_words && (declared[bit / 64] >> bit % 64 & 1) != 0;
}

// UM blocks that the launch may touch, counted once an argument. Its ranges lie behind it.
inline std::uint64_t blocks_of(const deepum_execute_event& launch) noexcept {
  const auto* ranges = reinterpret_cast<const deepum_block_range*>(&launch + 1);
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < ranges_of(launch); ++i) {
    blocks += parts(ranges[i]).count;
  }
  return blocks;
}

}  // namespace deepum
