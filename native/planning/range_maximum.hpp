// Numbers by launch: add to a range, and the greatest of a range, each in O(log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace deepum::planning {

class RangeMaximum {
 public:
  explicit RangeMaximum(std::span<const std::int64_t> values) {
    while (leaves_ < static_cast<std::int32_t>(values.size())) {
      leaves_ *= 2;
    }
    nodes_.resize(2 * static_cast<std::size_t>(leaves_));
    for (std::size_t i = 0; i < values.size(); ++i) {
      nodes_[leaves_ + i].greatest = values[i];
    }
    for (auto node = static_cast<std::size_t>(leaves_) - 1; node > 0; --node) {
      nodes_[node].greatest = std::max(nodes_[2 * node].greatest, nodes_[2 * node + 1].greatest);
    }
  }

  void add(std::int32_t first, std::int32_t end, std::int64_t value) {
    if (first < end) {
      add({1, 0, leaves_}, first, end, value);
    }
  }
  // 0 of an empty range.
  std::int64_t greatest(std::int32_t first, std::int32_t end) const {
    return first < end ? greatest({1, 0, leaves_}, first, end) : 0;
  }

 private:
  struct Node {
    std::int64_t greatest = 0;  // of what lies below, with `added`
    std::int64_t added = 0;     // to all of that
  };
  struct Place {
    std::size_t node;
    std::int32_t first, end;
    std::int32_t middle() const { return (first + end) / 2; }
    Place left() const { return {2 * node, first, middle()}; }
    Place right() const { return {2 * node + 1, middle(), end}; }
  };

  void add(Place at, std::int32_t first, std::int32_t end, std::int64_t value) {
    Node& node = nodes_[at.node];
    if (first <= at.first && at.end <= end) {
      node.greatest += value;
      node.added += value;
      return;
    }
    if (first < at.middle()) {
      add(at.left(), first, end, value);
    }
    if (end > at.middle()) {
      add(at.right(), first, end, value);
    }
    node.greatest =
        std::max(nodes_[2 * at.node].greatest, nodes_[2 * at.node + 1].greatest) + node.added;
  }
  std::int64_t greatest(Place at, std::int32_t first, std::int32_t end) const {
    const Node& node = nodes_[at.node];
    if (first <= at.first && at.end <= end) {
      return node.greatest;
    }
    std::int64_t found = std::numeric_limits<std::int64_t>::min() / 2;
    if (first < at.middle()) {
      found = std::max(found, greatest(at.left(), first, end));
    }
    if (end > at.middle()) {
      found = std::max(found, greatest(at.right(), first, end));
    }
    return found + node.added;
  }

  std::int32_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace deepum::planning
