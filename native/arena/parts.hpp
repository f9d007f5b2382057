// A problem in parts that can be placed apart: time is cut where nothing lives across, and what
// lives all the time of a part lies below the rest of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"

namespace deepum::arena {

struct Part {
  std::vector<std::int32_t> buffers;  // by begin, the largest first
  std::int64_t base;                  // nothing of it lies lower
};

// The parts, the offsets of what lies below them written. Nothing is lost: the lowest of the
// arenas that have these offsets is as low as any.
std::vector<Part> parts(const Problem& problem, std::span<std::int64_t> offsets);

}  // namespace deepum::arena
