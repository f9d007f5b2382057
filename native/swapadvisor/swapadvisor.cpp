#include "swapadvisor.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>

#include "dataflow_engine.hpp"
#include "dataflow_graph.hpp"
#include "guarded.hpp"
#include "swap_planner.hpp"

using deepum::guarded;
using deepum::swapadvisor::Graph;
using deepum::swapadvisor::Move;
using deepum::swapadvisor::Run;
using deepum::swapadvisor::SwapPlan;

struct deepum_swapadvisor_graph {
  Graph graph;
};

namespace {

constexpr std::int32_t kUnusable = -2;

bool is_allocation(const Graph& graph, std::span<const std::int32_t> class_of,
                   std::span<const std::int64_t> counts) {
  return std::ranges::all_of(class_of,
                             [&](std::int32_t one) {
                               return one >= 0 && one < static_cast<std::int64_t>(counts.size());
                             }) &&
         static_cast<std::int64_t>(class_of.size()) == graph.tensors();
}

void mutate(const Graph& graph, std::span<const std::int32_t> schedule, double probability,
            std::uint64_t seed, std::int32_t* mutated) {
  std::vector<std::int32_t> position(schedule.size()), waiting(schedule.size());
  std::vector<std::int32_t> ready, place(schedule.size(), -1);
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> earliest;
  const auto add = [&](std::int32_t one) {
    place[one] = static_cast<std::int32_t>(ready.size());
    ready.push_back(one);
    earliest.push(position[one]);
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    position[schedule[i]] = static_cast<std::int32_t>(i);
  }
  for (std::int32_t one = 0; one < graph.operations(); ++one) {
    waiting[one] = graph.predecessors(one);
    if (waiting[one] == 0) {
      add(one);
    }
  }
  std::mt19937_64 random(seed);
  const auto chance = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  while (!ready.empty()) {
    std::int32_t taken = 0;
    if (chance() < probability) {
      taken = ready[random() % ready.size()];
    } else {
      while (place[schedule[earliest.top()]] < 0) {
        earliest.pop();  // taken by chance before
      }
      taken = schedule[earliest.top()];
    }
    ready[place[taken]] = ready.back();
    place[ready.back()] = place[taken];
    ready.pop_back();
    place[taken] = -1;
    *mutated++ = taken;
    for (const std::int32_t after : graph.successors(taken)) {
      if (--waiting[after] == 0) {
        add(after);
      }
    }
  }
}

}  // namespace

extern "C" {

deepum_swapadvisor_graph* deepum_swapadvisor_create(
    const double* operation_ns, size_t operations, const deepum_swapadvisor_tensor* tensors,
    size_t tensor_count, const deepum_swapadvisor_use* uses, size_t use_count,
    const deepum_swapadvisor_edge* edges, size_t edge_count, double in_bytes_per_ns,
    double out_bytes_per_ns) {
  return guarded(
      static_cast<deepum_swapadvisor_graph*>(nullptr), [&]() -> deepum_swapadvisor_graph* {
        std::optional<Graph> made =
            Graph::make({operation_ns, operations}, {tensors, tensor_count}, {uses, use_count},
                        {edges, edge_count}, in_bytes_per_ns, out_bytes_per_ns);
        return made ? new deepum_swapadvisor_graph{*std::move(made)} : nullptr;
      });
}

void deepum_swapadvisor_destroy(deepum_swapadvisor_graph* graph) { delete graph; }

deepum_swapadvisor_result deepum_swapadvisor_evaluate(
    const deepum_swapadvisor_graph* graph, const int32_t* schedule, const int32_t* class_of,
    const int64_t* counts, size_t classes, const deepum_swapadvisor_options* options,
    deepum_swapadvisor_run* runs, deepum_swapadvisor_move* moves, size_t capacity) {
  const deepum_swapadvisor_result unusable{0, 0, 0, kUnusable, 0};
  return guarded(unusable, [&]() -> deepum_swapadvisor_result {
    const Graph& mine = graph->graph;
    const std::span order(schedule, mine.operations());
    const deepum::swapadvisor::Pool pool{{class_of, static_cast<std::size_t>(mine.tensors())},
                                         {counts, classes}};
    if (!mine.is_order(order) || !is_allocation(mine, pool.class_of, pool.counts)) {
      return unusable;
    }
    SwapPlan plan = deepum::swapadvisor::plan_swaps(mine, order, pool, *options);
    deepum_swapadvisor_result result{0, 0, 0, plan.stuck, static_cast<int32_t>(plan.moves.size())};
    if (plan.stuck != deepum::swapadvisor::kNone) {
      return result;
    }
    std::vector<Run> own(order.size());
    result.ns = deepum::swapadvisor::run_engine(mine, order, plan.moves, own);
    for (const Move& move : plan.moves) {
      const double bytes = static_cast<double>(mine.tensor(move.tensor).bytes);
      result.in_bytes += move.kind == DEEPUM_SWAPADVISOR_IN ? bytes : 0;
      result.out_bytes += move.kind == DEEPUM_SWAPADVISOR_OUT ? bytes : 0;
    }
    if (runs != nullptr) {
      std::ranges::copy(own, runs);
    }
    if (moves != nullptr) {
      std::copy_n(plan.moves.begin(), std::min(capacity, plan.moves.size()), moves);
    }
    return result;
  });
}

int deepum_swapadvisor_mutate(const deepum_swapadvisor_graph* graph, const int32_t* schedule,
                              double probability, uint64_t seed, int32_t* mutated) {
  return guarded(-1, [&] {
    const std::span order(schedule, graph->graph.operations());
    if (!graph->graph.is_order(order)) {
      return -1;
    }
    mutate(graph->graph, order, probability, seed, mutated);
    return 0;
  });
}

}  // extern "C"
