#include "canonical.hpp"

#include <algorithm>
#include <limits>
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
      lowest_(problem.size()),
      above_(problem.sections()),
      base_(base) {}

Canonical::Outcome Canonical::run(std::span<const std::int32_t> buffers, std::int64_t height,
                                  std::int64_t nodes, Clock::time_point until,
                                  std::span<std::int64_t> offsets) {
  for (const std::int32_t index : buffers) {
    const Buffer& buffer = problem_[index];
    lowest_[index] = aligned(base_, buffer.alignment);
  }
  height_ = height;
  nodes_ = nodes;
  until_ = until;
  offsets_ = offsets;
  outcome_ = Outcome::kNone;
  return solve(buffers, {0, -1}) ? Outcome::kFound : outcome_;
}

bool Canonical::spent() {
  if (--nodes_ < 0) {
    outcome_ = Outcome::kBudget;
  } else if (nodes_ % kNodesAtOnce == 0 && Clock::now() >= until_) {
    outcome_ = Outcome::kLate;
  }
  return outcome_ != Outcome::kNone;
}

bool Canonical::solve(std::span<const std::int32_t> left, Last last) {
  if (left.empty()) {
    return true;
  }
  std::int32_t reach = problem_[left.front()].end;
  for (const std::int32_t index : left) {
    if (problem_[index].begin >= reach) {
      return solve_apart(left, last);
    }
    reach = std::max(reach, problem_[index].end);
  }
  return !spent() && can_fit(left, last) && branch(left, last);
}

bool Canonical::solve_apart(std::span<const std::int32_t> left, Last last) {
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
  return std::ranges::all_of(parts, [&](const auto& part) { return solve(part, last); });
}

std::int64_t Canonical::least(std::int32_t index, std::span<const std::int32_t> left,
                              Last last) const {
  if (!passed(index, last)) {
    return lowest_[index];
  }
  std::int64_t found = kFar;
  for (const std::int32_t other : left) {
    if (other != index && problem_[other].lives_with(problem_[index])) {
      found = std::min(found, std::max(lowest_[other], last.offset) + problem_[other].size);
    }
  }
  return found == kFar ? -1 : found;
}

bool Canonical::can_fit(std::span<const std::int32_t> left, Last last) {
  by_offset_.clear();
  for (const std::int32_t index : left) {
    const std::int64_t offset = least(index, left, last);
    if (offset < 0) {
      return false;
    }
    if (offset + problem_[index].size > height_) {
      blame_[index] += kBlameTooHigh;
      return false;
    }
    by_offset_.push_back({offset, index});
    const auto sections = std::span(above_).subspan(problem_[index].begin,
                                                    problem_[index].end - problem_[index].begin);
    std::ranges::fill(sections, 0);
  }
  std::ranges::sort(by_offset_, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.offset, a.index) > std::pair(b.offset, b.index);
  });
  for (const auto& [offset, index] : by_offset_) {  // what is as high at least, by section
    const Buffer& buffer = problem_[index];
    std::int64_t most = 0;
    for (std::int32_t at = buffer.begin; at < buffer.end; ++at) {
      above_[at] += buffer.size;
      most = std::max(most, above_[at]);
    }
    if (offset + most > height_) {
      const auto crowded = std::ranges::max_element(
          std::span(above_).subspan(buffer.begin, buffer.end - buffer.begin));
      const auto at = static_cast<std::int32_t>(&*crowded - above_.data());
      for (const std::int32_t other : left) {
        const bool there = problem_[other].begin <= at && at < problem_[other].end;
        blame_[other] += there ? kBlameCrowded : 0.0;
      }
      return false;
    }
  }
  return true;
}

bool Canonical::branch(std::span<const std::int32_t> left, Last last) {
  std::int64_t lowest_top = kFar;
  for (const std::int32_t index : left) {
    lowest_top = std::min(lowest_top, lowest_[index] + problem_[index].size);
  }
  std::vector<Candidate> candidates;
  for (const std::int32_t index : left) {
    if (!passed(index, last) && lowest_[index] < lowest_top) {
      candidates.push_back({lowest_[index], index});
    }
  }
  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    return std::pair(a.offset, rank_[a.index]) < std::pair(b.offset, rank_[b.index]);
  });
  std::vector<std::int32_t> rest;
  std::vector<Candidate> raised;  // from these offsets
  for (const auto& [offset, index] : candidates) {
    const Buffer& buffer = problem_[index];
    rest.clear();
    raised.clear();
    for (const std::int32_t other : left) {
      if (other == index) {
        continue;
      }
      rest.push_back(other);
      if (lowest_[other] < offset + buffer.size && problem_[other].lives_with(buffer)) {
        raised.push_back({lowest_[other], other});
        lowest_[other] = aligned(offset + buffer.size, problem_[other].alignment);
      }
    }
    offsets_[index] = offset;
    if (solve(rest, {offset, rank_[index]})) {
      return true;
    }
    for (const auto& [before, other] : raised) {
      lowest_[other] = before;
    }
    if (outcome_ != Outcome::kNone) {
      return false;
    }
  }
  return false;
}

}  // namespace deepum::arena
