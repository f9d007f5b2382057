#include "dataflow_graph.hpp"

#include <algorithm>

namespace deepum::swapadvisor {

std::optional<Graph> Graph::make(std::span<const double> operation_ns,
                                 std::span<const Tensor> tensors, std::span<const Use> uses,
                                 std::span<const deepum_swapadvisor_edge> edges, double in_rate,
                                 double out_rate) {
  constexpr std::size_t kMost = 1u << 28;
  if (operation_ns.empty() || operation_ns.size() > kMost || tensors.size() > kMost ||
      uses.size() > kMost || edges.size() > kMost || !(in_rate > 0) || !(out_rate > 0)) {
    return std::nullopt;
  }
  Graph made;
  made.operation_ns_.assign(operation_ns.begin(), operation_ns.end());
  made.tensors_.assign(tensors.begin(), tensors.end());
  made.uses_.assign(uses.begin(), uses.end());
  made.in_rate_ = in_rate;
  made.out_rate_ = out_rate;
  const auto outside = [&](std::int32_t operation) {
    return operation < 0 || operation >= made.operations();
  };
  if (!std::ranges::all_of(operation_ns, [](double ns) { return ns >= 0; }) ||
      std::ranges::any_of(tensors, [](const Tensor& tensor) { return tensor.bytes <= 0; }) ||
      std::ranges::any_of(
          edges, [&](const auto& edge) { return outside(edge.before) || outside(edge.after); })) {
    return std::nullopt;
  }
  made.first_use_.assign(operation_ns.size() + 1, 0);
  std::int32_t last = 0;
  for (const Use& use : uses) {
    if (outside(use.operation) || use.operation < last || use.tensor < 0 ||
        use.tensor >= made.tensors()) {
      return std::nullopt;
    }
    last = use.operation;
    ++made.first_use_[use.operation + 1];
  }
  for (std::int32_t i = 0; i < made.operations(); ++i) {
    made.first_use_[i + 1] += made.first_use_[i];
  }
  made.predecessors_.assign(operation_ns.size(), 0);
  for (const deepum_swapadvisor_edge& edge : edges) {
    ++made.predecessors_[edge.after];
  }
  made.successors_ = Lists(operation_ns.size(), [&](auto add) {
    for (const deepum_swapadvisor_edge& edge : edges) {
      add(edge.before, edge.after);
    }
  });
  return made;
}

bool Graph::is_order(std::span<const std::int32_t> schedule) const {
  std::vector<bool> seen(operations(), false);
  return schedule.size() == seen.size() && std::ranges::all_of(schedule, [&](std::int32_t one) {
           const bool fresh = one >= 0 && one < operations() && !seen[one];
           if (fresh) {
             seen[one] = true;
           }
           return fresh;
         });
}

}  // namespace deepum::swapadvisor
