// Where the elements of a strided operand lie: runs of memory, with what is left out between them.
// deepum/capture/runs.py has the same rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepum::simgpu {

struct Run {
  std::uint64_t offset, bytes;
};
struct Dimension {
  std::uint64_t size, stride;  // elements, bytes
};

// Of elements of `element` bytes. In full, from the first element to the last, where the gaps are
// shorter than a region of 64 KiB: content moves in those (docs/um-model.md), so that leaving them
// out would tell nothing. Likewise where there would be too many runs.
inline std::vector<Run> runs(std::vector<Dimension> dimensions, std::uint64_t element) {
  constexpr std::uint64_t kRegion = 1u << 16;
  constexpr std::size_t kMost = 1u << 16;
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::uint64_t run = element, span = element;
  std::vector<std::uint64_t> starts{0};
  for (const auto& [size, stride] : dimensions) {
    if (size == 0) return {};
    span += (size - 1) * stride;
    if (size == 1 || starts.empty()) continue;
    if (starts.size() == 1 && stride < run + kRegion) {
      run = std::max(run, (size - 1) * stride + run);
      continue;
    }
    if (size > kMost / starts.size()) {
      starts.clear();
      continue;
    }
    const std::size_t before = starts.size();
    starts.reserve(before * size);
    for (std::uint64_t i = 1; i < size; ++i) {
      for (std::size_t at = 0; at < before; ++at) starts.push_back(starts[at] + i * stride);
    }
  }
  if (starts.empty()) return {{0, span}};
  std::sort(starts.begin(), starts.end());
  std::vector<Run> merged;
  for (const std::uint64_t start : starts) {
    if (merged.empty() || start >= merged.back().offset + merged.back().bytes + kRegion) {
      merged.push_back({start, run});
    } else {
      merged.back().bytes = std::max(merged.back().bytes, start - merged.back().offset + run);
    }
  }
  return merged;
}

}  // namespace deepum::simgpu
