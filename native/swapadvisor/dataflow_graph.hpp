// A dataflow graph as the swap planner and the engine read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "swapadvisor.h"

namespace deepum::swapadvisor {

using Move = deepum_swapadvisor_move;
using Run = deepum_swapadvisor_run;
using Tensor = deepum_swapadvisor_tensor;
using Use = deepum_swapadvisor_use;
using Options = deepum_swapadvisor_options;
constexpr std::int32_t kNone = -1;

// Lists of numbers, one for each number below `size`, one behind the other.
class Lists {
 public:
  Lists() = default;
  // `each` calls what it is given with (list, number), the same on both of its calls.
  template <typename Each>
  Lists(std::size_t size, Each each) : begins_(size + 1, 0) {
    each([this](std::int32_t list, std::int32_t) { ++begins_[list + 1]; });
    for (std::size_t i = 0; i < size; ++i) {
      begins_[i + 1] += begins_[i];
    }
    numbers_.resize(begins_[size]);
    std::vector<std::int32_t> at(begins_.begin(), begins_.end() - 1);
    each([&](std::int32_t list, std::int32_t number) { numbers_[at[list]++] = number; });
  }
  std::span<const std::int32_t> operator[](std::int32_t list) const {
    return std::span(numbers_).subspan(begins_[list], begins_[list + 1] - begins_[list]);
  }

 private:
  std::vector<std::int32_t> begins_, numbers_;
};

class Graph {
 public:
  // Empty where a number is out of range or a rate is not positive.
  static std::optional<Graph> make(std::span<const double> operation_ns,
                                   std::span<const Tensor> tensors, std::span<const Use> uses,
                                   std::span<const deepum_swapadvisor_edge> edges, double in_rate,
                                   double out_rate);

  std::int32_t operations() const { return static_cast<std::int32_t>(operation_ns_.size()); }
  std::int32_t tensors() const { return static_cast<std::int32_t>(tensors_.size()); }
  double operation_ns(std::int32_t operation) const { return operation_ns_[operation]; }
  const Tensor& tensor(std::int32_t tensor) const { return tensors_[tensor]; }
  double in_ns(std::int32_t tensor) const { return tensors_[tensor].bytes / in_rate_; }
  double out_ns(std::int32_t tensor) const { return tensors_[tensor].bytes / out_rate_; }
  std::span<const Use> uses(std::int32_t operation) const {
    return std::span(uses_).subspan(first_use_[operation],
                                    first_use_[operation + 1] - first_use_[operation]);
  }
  std::int32_t first_use(std::int32_t operation) const { return first_use_[operation]; }
  std::size_t use_count() const { return uses_.size(); }
  std::span<const std::int32_t> successors(std::int32_t operation) const {
    return successors_[operation];
  }
  std::int32_t predecessors(std::int32_t operation) const { return predecessors_[operation]; }
  // Whether it has each operator once.
  bool is_order(std::span<const std::int32_t> schedule) const;

 private:
  std::vector<double> operation_ns_;
  std::vector<Tensor> tensors_;
  std::vector<Use> uses_;
  std::vector<std::int32_t> first_use_;
  Lists successors_;
  std::vector<std::int32_t> predecessors_;
  double in_rate_ = 1, out_rate_ = 1;
};

}  // namespace deepum::swapadvisor
