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

// UM blocks that the launch may touch, counted once an argument. Its ranges lie behind it.
inline std::uint64_t blocks_of(const deepum_execute_event& launch) noexcept {
  const auto* ranges = reinterpret_cast<const deepum_block_range*>(&launch + 1);
  std::uint64_t blocks = 0;
  for (std::size_t i = 0;
       i < std::size_t{launch.write_ranges} + launch.read_ranges + launch.unknown_ranges; ++i) {
    blocks += parts(ranges[i]).count;
  }
  return blocks;
}

}  // namespace deepum
