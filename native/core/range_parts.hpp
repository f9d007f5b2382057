// A range of UM blocks as records carry it, in its parts.
#pragma once

#include <cstdint>

#include "records.h"

namespace deepum::core {

struct RangeParts {
  std::uint32_t slot, first, count;
};

inline RangeParts parts(deepum_block_range range) {
  return {static_cast<std::uint32_t>(range >> DEEPUM_RANGE_SLOT_SHIFT),
          static_cast<std::uint32_t>(range >> DEEPUM_RANGE_FIRST_SHIFT) & ((1u << DEEPUM_RANGE_FIRST_BITS) - 1),
          static_cast<std::uint32_t>(range) & ((1u << DEEPUM_RANGE_COUNT_BITS) - 1)};
}

}  // namespace deepum::core
