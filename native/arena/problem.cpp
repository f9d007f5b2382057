#include "problem.hpp"

#include <algorithm>
#include <limits>

namespace deepum::arena {

std::optional<Problem> Problem::make(std::span<const deepum_arena_buffer> buffers) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (buffers.size() > std::numeric_limits<std::int32_t>::max() / 4) {
    return std::nullopt;
  }
  std::vector<std::int64_t> times;
  std::int64_t left = kMost;
  for (const deepum_arena_buffer& one : buffers) {
    if (one.begin < 0 || one.begin >= one.end || one.size < 0 || one.alignment < 1 ||
        one.size > left || one.alignment > left - one.size) {
      return std::nullopt;
    }
    left -= one.size + one.alignment;
    times.push_back(one.begin);
    times.push_back(one.end);
  }
  std::ranges::sort(times);
  times.erase(std::ranges::unique(times).begin(), times.end());
  const auto section = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(times, time) - times.begin());
  };
  Problem made;
  std::vector<std::int64_t> bytes(times.size());
  std::vector<std::int64_t> counts(times.size());
  for (const deepum_arena_buffer& one : buffers) {
    const Buffer buffer{section(one.begin), section(one.end), one.size, one.alignment,
                        one.end - one.begin};
    made.buffers_.push_back(buffer);
    bytes[buffer.begin] += buffer.size;
    bytes[buffer.end] -= buffer.size;
    counts[buffer.begin] += 1;
    counts[buffer.end] -= 1;
  }
  std::int64_t live = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    live += bytes[i];
    count += counts[i];
    made.loads_.push_back(live);
    made.load_ = std::max(made.load_, live);
    made.overlap_ = std::max(made.overlap_, count);
  }
  return made;
}

}  // namespace deepum::arena
