// Graphs come and change; what they do is told at their launches (launch_hooks.cpp).
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "captures.hpp"
#include "forkable_mutex.hpp"
#include "graph_truth.hpp"
#include "graphs.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

struct Graphs {
  ForkableMutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<GraphTruth>> graphs;
};
Graphs& graphs() noexcept { return immortal<Graphs>(); }

std::shared_ptr<GraphTruth> truth_of(CUgraphExec exec) noexcept {
  const std::lock_guard lock(graphs().mutex);
  const auto found = graphs().graphs.find(exec);
  return found != graphs().graphs.end() ? found->second : nullptr;
}

void instantiated(CUgraphExec exec, CUgraph graph) noexcept try {
  auto truth = std::make_shared<GraphTruth>(graph, extents_of(graph));
  const std::lock_guard lock(graphs().mutex);
  graphs().graphs[exec] = std::move(truth);
} catch (...) {
  return;
}

void updated(CUgraphExec exec, CUgraph graph) noexcept try {
  auto truth = std::make_shared<GraphTruth>(graph, extents_of(graph));
  if (const auto before = truth_of(exec)) {
    truth->take_names_of(*before);
  }
  const std::lock_guard lock(graphs().mutex);
  graphs().graphs[exec] = std::move(truth);
} catch (...) {
  return;
}

// One node of the executable graph changed: `make` says what it does.
template <typename Make>
void changed(CUgraphExec exec, CUgraphNode node, Make make) noexcept try {
  if (const auto truth = truth_of(exec)) {
    GraphTruth::Does does = make(*truth);
    const std::lock_guard lock(graphs().mutex);
    if (does) {
      truth->set(node, std::move(does));
    }
  }
} catch (...) {
  return;
}

void set_enabled(CUgraphExec exec, CUgraphNode node, bool enabled) noexcept try {
  const std::lock_guard lock(graphs().mutex);
  if (const auto found = graphs().graphs.find(exec); found != graphs().graphs.end()) {
    found->second->set_enabled(node, enabled);
  }
} catch (...) {
  return;
}

template <typename Parameters>
CUDA_KERNEL_NODE_PARAMS as_newest(const Parameters& given) noexcept {
  CUDA_KERNEL_NODE_PARAMS made{};
  made.gridDimX = given.gridDimX;
  made.gridDimY = given.gridDimY;
  made.gridDimZ = given.gridDimZ;
  made.blockDimX = given.blockDimX;
  made.blockDimY = given.blockDimY;
  made.blockDimZ = given.blockDimZ;
  made.sharedMemBytes = given.sharedMemBytes;
  made.kernelParams = given.kernelParams;
  made.extra = given.extra;
  return made;
}

template <typename Parameters>
GraphTruth::Does kernel(const GraphTruth& truth, const Parameters& given) {
  CUfunction function = given.func;
  if constexpr (requires { given.kern; }) {
    function = function ? function : reinterpret_cast<CUfunction>(given.kern);
  }
  return function ? truth.kernel(function, as_newest(given)) : GraphTruth::unknown();
}

// Null: what it does is no use of memory.
GraphTruth::Does anything(const GraphTruth& truth, const CUgraphNodeParams& given) {
  switch (given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel(truth, given.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return GraphTruth::copy(given.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      fill.dst = given.memset.dst;
      fill.pitch = given.memset.pitch;
      fill.value = given.memset.value;
      fill.elementSize = given.memset.elementSize;
      fill.width = given.memset.width;
      fill.height = given.memset.height;
      return GraphTruth::fill(fill);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return truth.child(given.graph.graph);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return GraphTruth::unknown();
    default:
      return nullptr;
  }
}

template <bool kPerThread>
CUresult on_cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                               char* log_buffer, size_t buffer_size) {
  const CUresult result =
      forward(real<false>().cuGraphInstantiate, exec, graph, error_node, log_buffer, buffer_size);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                                  char* log_buffer, size_t buffer_size) {
  const CUresult result = forward(real<false>().cuGraphInstantiate_v2, exec, graph, error_node,
                                  log_buffer, buffer_size);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                        unsigned long long flags) {
  const CUresult result = forward(real<false>().cuGraphInstantiateWithFlags, exec, graph, flags);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  const CUresult result =
      forward(real<kPerThread>().cuGraphInstantiateWithParams, exec, graph, parameters);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                              CUgraphExecUpdateResult* update) {
  const CUresult result = forward(real<false>().cuGraphExecUpdate, exec, graph, error_node, update);
  if (result == CUDA_SUCCESS) {
    updated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                 CUgraphExecUpdateResultInfo* info) {
  const CUresult result = forward(real<false>().cuGraphExecUpdate_v2, exec, graph, info);
  if (result == CUDA_SUCCESS) {
    updated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  const CUresult result =
      forward(real<false>().cuGraphExecKernelNodeSetParams, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, node, [&](const GraphTruth& truth) { return kernel(truth, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  const CUresult result =
      forward(real<false>().cuGraphExecKernelNodeSetParams_v2, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, node, [&](const GraphTruth& truth) { return kernel(truth, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMCPY3D* copy, CUcontext context) {
  const CUresult result =
      forward(real<false>().cuGraphExecMemcpyNodeSetParams, exec, node, copy, context);
  if (result == CUDA_SUCCESS && copy) {
    changed(exec, node, [&](const GraphTruth&) { return GraphTruth::copy(*copy); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  const CUresult result =
      forward(real<false>().cuGraphExecMemsetNodeSetParams, exec, node, fill, context);
  if (result == CUDA_SUCCESS && fill) {
    changed(exec, node, [&](const GraphTruth&) { return GraphTruth::fill(*fill); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const CUresult result =
      forward(real<false>().cuGraphExecChildGraphNodeSetParams, exec, node, child);
  if (result == CUDA_SUCCESS) {
    changed(exec, node, [&](const GraphTruth& truth) { return truth.child(child); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     CUgraphNodeParams* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecNodeSetParams, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, node, [&](const GraphTruth& truth) { return anything(truth, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const CUresult result = forward(real<false>().cuGraphNodeSetEnabled, exec, node, enabled);
  if (result == CUDA_SUCCESS) {
    set_enabled(exec, node, enabled != 0);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphDestroy(CUgraph graph) {
  graph_destroyed(graph);
  return forward(real<false>().cuGraphDestroy, graph);
}

template <bool kPerThread>
CUresult on_cuGraphExecDestroy(CUgraphExec exec) {
  {
    const std::lock_guard lock(graphs().mutex);
    graphs().graphs.erase(exec);
  }
  return forward(real<false>().cuGraphExecDestroy, exec);
}

}  // namespace

void describe_graph(CUgraphExec exec, Execution& execution) noexcept try {
  std::shared_ptr<const GraphTruth::Launch> launch;
  {
    const std::lock_guard lock(graphs().mutex);
    const auto found = graphs().graphs.find(exec);
    if (found != graphs().graphs.end()) {
      launch = found->second->launch();
    }
  }
  if (!launch) {
    execution.mark_partial();
    return;
  }
  execution.mix_in(launch->identity);
  if (launch->partial) {
    execution.mark_partial();
  }
  for (const auto& [address, bytes] : launch->bytes) {
    execution.add_access(address, bytes, Execution::Access::kUnknown);
  }
  for (const auto& [address, extent] : launch->pointers) {
    if (extent.range != 0 && still_there(extent)) {
      execution.add(extent.range, Execution::Access::kUnknown);
    } else {
      execution.add_access(address, 0, Execution::Access::kUnknown);
    }
  }
} catch (...) {
  execution.mark_partial();
}

void abandon_graphs_in_child() noexcept {
  graphs().mutex.renew();
  abandon_captures_in_child();
}

}  // namespace deepum::hooks

#define HOOKS_GRAPH
#include "exports.inc"
