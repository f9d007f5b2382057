#include "placement.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace deepum::arena {

std::int64_t Placement::place(std::int32_t index, deepum_arena_fit fit) {
  const Buffer& buffer = problem_[index];
  const std::int64_t offset = where(buffer, fit);
  const Placed placed{buffer.begin, buffer.end, offset, offset + buffer.size};
  height_ = std::max(height_, placed.top);
  if (buffer.size > 0) {  // what is empty is in nobody's way
    placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::offset), placed);
  }
  return offset;
}

std::int64_t Placement::where(const Buffer& buffer, deepum_arena_fit fit) const {
  std::int64_t at = aligned(base_, buffer.alignment);
  if (buffer.size == 0) {
    return at;
  }
  std::int64_t top = base_;  // of all below
  std::int64_t best = -1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Placed& other : placed_) {
    if (other.begin >= buffer.end || buffer.begin >= other.end) {
      continue;
    }
    if (fit != DEEPUM_ARENA_ABOVE && other.offset >= at + buffer.size) {
      if (fit == DEEPUM_ARENA_LOWEST) {
        return at;
      }
      if (other.offset - top < least) {
        least = other.offset - top;
        best = at;
      }
    }
    if (other.top > top) {
      top = other.top;
      at = aligned(top, buffer.alignment);
    }
  }
  return best >= 0 ? best : at;
}

std::int64_t height(const Problem& problem, std::span<const std::int64_t> offsets) {
  struct Change {
    std::int32_t section;
    bool begins;  // behind those that end
    std::int32_t index;
    auto operator<=>(const Change&) const = default;
  };
  std::vector<Change> changes;
  std::int64_t highest = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem.size()); ++i) {
    if (offsets[i] < 0 || offsets[i] % problem[i].alignment != 0 ||
        offsets[i] > std::numeric_limits<std::int64_t>::max() - problem[i].size) {
      return -1;
    }
    highest = std::max(highest, offsets[i] + problem[i].size);
    if (problem[i].size > 0) {
      changes.push_back({problem[i].begin, true, i});
      changes.push_back({problem[i].end, false, i});
    }
  }
  std::ranges::sort(changes);
  std::map<std::int64_t, std::int64_t> live;  // ends, by offset
  for (const Change& change : changes) {
    const std::int64_t offset = offsets[change.index];
    const std::int64_t end = offset + problem[change.index].size;
    if (!change.begins) {
      live.erase(offset);
      continue;
    }
    const auto behind = live.lower_bound(offset);
    if ((behind != live.end() && behind->first < end) ||
        (behind != live.begin() && std::prev(behind)->second > offset)) {
      return -1;
    }
    live.emplace_hint(behind, offset, end);
  }
  return highest;
}

}  // namespace deepum::arena
