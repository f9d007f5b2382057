#include "canonical.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>
#include <utility>

namespace deepum::arena {
namespace {

constexpr double kBlameTooHigh = 1.0;
constexpr double kBlameCrowded = 0.1;
constexpr std::int64_t kNodesAtOnce = 32;  // between looks at the clock
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

}  // namespace

Canonical::Canonical(const Problem& problem, std::int64_t base, std::span<const std::int32_t> rank,
                     std::span<double> blame)
    : problem_(problem),
      rank_(rank),
      blame_(blame),
      bounds_(problem.size()),
      above_(problem.sections()),
      changes_(problem.sections() + 1),
      base_(base) {}

Canonical::Outcome Canonical::run(std::span<const std::int32_t> buffers, std::int64_t height,
                                  std::int64_t nodes, Clock::time_point until,
                                  std::span<std::int64_t> offsets) {
  for (const std::int32_t index : buffers) {
    const std::int64_t lowest = aligned(base_, problem_[index].alignment);
    bounds_[index] = {lowest, lowest};
  }
  height_ = height;
  nodes_ = nodes;
  until_ = until;
  offsets_ = offsets;
  outcome_ = Outcome::kNone;
  return solve(buffers) ? Outcome::kFound : outcome_;
}

bool Canonical::spent() {
  if (--nodes_ < 0) {
    outcome_ = Outcome::kBudget;
  } else if (nodes_ % kNodesAtOnce == 0 && Clock::now() >= until_) {
    outcome_ = Outcome::kLate;
  }
  return outcome_ != Outcome::kNone;
}

bool Canonical::solve(std::span<const std::int32_t> left) {
  if (left.empty()) {
    return true;
  }
  std::int32_t reach = problem_[left.front()].end;
  for (const std::int32_t index : left) {
    if (problem_[index].begin >= reach) {
      return solve_apart(left);
    }
    reach = std::max(reach, problem_[index].end);
  }
  return solve_connected(left);
}

bool Canonical::solve_apart(std::span<const std::int32_t> left) {
  std::vector<std::span<const std::int32_t>> parts;
  std::size_t first = 0;
  std::int32_t reach = problem_[left.front()].end;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (problem_[left[i]].begin >= reach) {
      parts.push_back(left.subspan(first, i - first));
      first = i;
    }
    reach = std::max(reach, problem_[left[i]].end);
  }
  parts.push_back(left.subspan(first));
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.size(); });
  return std::ranges::all_of(parts, [&](const auto& part) { return solve(part); });
}

bool Canonical::solve_connected(std::span<const std::int32_t> left) {
  std::vector<Change> changes;
  while (!spent() && raise(left, changes) && can_fit(left)) {
    const std::vector<std::int32_t> lowest = options();
    for (const std::int32_t index : lowest) {
      if (place(index, left)) {
        return true;
      }
      if (outcome_ != Outcome::kNone) {
        break;
      }
    }
    for (const std::int32_t index : lowest) {  // all of them lie higher
      const auto [offset, support] = bounds_[index];
      set(index, {aligned(offset + 1, problem_[index].alignment), support}, changes);
    }
  }
  undo(changes);
  return false;
}

bool Canonical::raise(std::span<const std::int32_t> left, std::vector<Change>& changes) {
  for (const std::int32_t index : left) {
    const Buffer& buffer = problem_[index];
    const auto [lowest, support] = bounds_[index];
    if (lowest == support) {
      continue;
    }
    std::int64_t below = kFar;  // the lowest that can be in its way
    std::int64_t top = kFar;    // that it can lie on
    for (const std::int32_t other : left) {
      if (problem_[other].begin >= buffer.end) {
        break;
      }
      if (other != index && problem_[other].lives_with(buffer)) {
        below = std::min(below, bounds_[other].lowest);
        top = std::min(top, bounds_[other].lowest + problem_[other].size);
      }
    }
    if (below >= support + buffer.size) {
      return false;
    }
    if (top > lowest) {
      set(index, {aligned(top, buffer.alignment), support}, changes);
    }
  }
  return true;
}

bool Canonical::can_fit(std::span<const std::int32_t> left) {
  by_lowest_.clear();
  std::ranges::fill(above_, 0);
  for (const std::int32_t index : left) {
    const Buffer& buffer = problem_[index];
    if (bounds_[index].lowest + buffer.size > height_) {
      blame_[index] += kBlameTooHigh;
      return false;
    }
    by_lowest_.push_back({bounds_[index].lowest, index});
  }
  std::ranges::sort(by_lowest_, std::greater{});
  for (const auto& [lowest, index] : by_lowest_) {  // what is as high at least, by section
    const Buffer& buffer = problem_[index];
    std::int64_t most = 0;
    for (std::int32_t at = buffer.begin; at < buffer.end; ++at) {
      above_[at] += buffer.size;
      most = std::max(most, above_[at]);
    }
    if (lowest + most > height_) {
      const auto first = above_.begin() + buffer.begin;
      const auto last = above_.begin() + buffer.end;
      const auto crowded =
          static_cast<std::int32_t>(std::max_element(first, last) - above_.begin());
      for (const std::int32_t other : left) {
        blame_[other] += problem_[other].lives_at(crowded) ? kBlameCrowded : 0.0;
      }
      return false;
    }
  }
  return true;
}

std::vector<std::int32_t> Canonical::options() {
  const std::int64_t lowest = by_lowest_.back().first;
  std::vector<std::int32_t> found;
  std::ranges::fill(changes_, 0);
  for (const auto& [offset, index] : std::views::reverse(by_lowest_)) {
    if (offset > lowest) {
      break;
    }
    found.push_back(index);
    ++changes_[problem_[index].begin];
    --changes_[problem_[index].end];
  }
  std::int32_t lives = 0;
  std::int32_t fewest = std::numeric_limits<std::int32_t>::max();
  std::int32_t where = 0;
  for (std::int32_t at = 0; at < problem_.sections(); ++at) {
    lives += changes_[at];
    if (lives == 0) {
      continue;
    }
    const bool room = lowest + above_[at] < height_;  // to be empty there
    if (lives + (room ? 1 : 0) < fewest) {
      fewest = lives + (room ? 1 : 0);
      where = at;
    }
  }
  std::erase_if(found, [&](std::int32_t index) { return !problem_[index].lives_at(where); });
  std::ranges::sort(found, {}, [&](std::int32_t index) { return rank_[index]; });
  return found;
}

bool Canonical::place(std::int32_t index, std::span<const std::int32_t> left) {
  const Buffer& buffer = problem_[index];
  const std::int64_t top = bounds_[index].lowest + buffer.size;
  std::vector<std::int32_t> rest;
  std::vector<Change> changes;
  for (const std::int32_t other : left) {
    if (other == index) {
      continue;
    }
    rest.push_back(other);
    const auto [lowest, support] = bounds_[other];
    if (problem_[other].lives_with(buffer) && top > support) {
      const std::int64_t now = aligned(top, problem_[other].alignment);
      set(other, {std::max(lowest, now), now}, changes);
    }
  }
  offsets_[index] = bounds_[index].lowest;
  const bool found = solve(rest);
  undo(changes);
  return found;
}

void Canonical::set(std::int32_t index, Bounds bounds, std::vector<Change>& changes) {
  changes.push_back({index, bounds_[index]});
  bounds_[index] = bounds;
}

void Canonical::undo(std::span<const Change> changes) {
  for (const auto& [index, before] : std::views::reverse(changes)) {
    bounds_[index] = before;
  }
}

}  // namespace deepum::arena
