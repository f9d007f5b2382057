#include "parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace deepum::arena {
namespace {

std::vector<std::vector<std::int32_t>> cut(const Problem& problem,
                                           std::span<const std::int32_t> by_begin) {
  std::vector<std::vector<std::int32_t>> found;
  std::int32_t reach = std::numeric_limits<std::int32_t>::min();
  for (const std::int32_t index : by_begin) {
    if (problem[index].begin >= reach) {
      found.emplace_back();
    }
    found.back().push_back(index);
    reach = std::max(reach, problem[index].end);
  }
  return found;
}

}  // namespace

std::vector<Part> parts(const Problem& problem, std::span<std::int64_t> offsets) {
  std::vector<std::int32_t> by_begin;
  std::int64_t alignment = 1;  // whole multiples of it leave no holes
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(problem.size()); ++i) {
    offsets[i] = 0;
    if (problem[i].size > 0) {
      by_begin.push_back(i);
      alignment = std::max(alignment, problem[i].alignment);
    }
  }
  const bool divides = std::ranges::all_of(
      by_begin, [&](std::int32_t i) { return alignment % problem[i].alignment == 0; });
  std::ranges::stable_sort(
      by_begin, {}, [&](std::int32_t i) { return std::pair(problem[i].begin, -problem[i].size); });
  std::vector<Part> found;
  std::vector<Part> left;
  left.push_back({std::move(by_begin), 0});
  while (!left.empty()) {
    const Part part = std::move(left.back());
    left.pop_back();
    for (std::vector<std::int32_t>& piece : cut(problem, part.buffers)) {
      const std::int32_t begin = problem[piece.front()].begin;
      std::int32_t end = begin;
      for (const std::int32_t index : piece) {
        end = std::max(end, problem[index].end);
      }
      std::vector<std::int32_t> rest;
      std::int64_t base = part.base;
      for (const std::int32_t index : piece) {
        const Buffer& buffer = problem[index];
        if (divides && buffer.begin == begin && buffer.end == end && buffer.size % alignment == 0) {
          offsets[index] = base;
          base += buffer.size;
        } else {
          rest.push_back(index);
        }
      }
      if (rest.size() == piece.size()) {
        found.push_back({std::move(rest), base});
      } else if (!rest.empty()) {
        left.push_back({std::move(rest), base});
      }
    }
  }
  return found;
}

}  // namespace deepum::arena
