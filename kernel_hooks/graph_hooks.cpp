// Graphs come and change; what they do is told at their launches (launch_hooks.cpp).
#include <memory>
#include <mutex>
#include <unordered_map>

#include "captures.hpp"
#include "forkable_mutex.hpp"
#include "graph_truth.hpp"
#include "graphs.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

struct State {
  ForkableMutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<GraphTruth>> graphs;
};
State& state() noexcept { return immortal<State>(); }

std::shared_ptr<GraphTruth> truth_of(CUgraphExec exec) noexcept {
  const std::lock_guard lock(state().mutex);
  const auto found = state().graphs.find(exec);
  return found != state().graphs.end() ? found->second : nullptr;
}

void instantiated(CUgraphExec exec, CUgraph graph) noexcept try {
  auto truth = std::make_shared<GraphTruth>(graph, extents_of(graph));
  const std::lock_guard lock(state().mutex);
  state().graphs[exec] = std::move(truth);
} catch (...) {
  return;
}

void updated(CUgraphExec exec, CUgraph graph) noexcept try {
  auto truth = std::make_shared<GraphTruth>(graph, extents_of(graph));
  if (const auto before = truth_of(exec)) {
    truth->take_names_of(*before);
  }
  const std::lock_guard lock(state().mutex);
  state().graphs[exec] = std::move(truth);
} catch (...) {
  return;
}

// One node of the executable graph changed.
template <typename Change>
void changed(CUgraphExec exec, Change change) noexcept try {
  const auto before = truth_of(exec);
  if (!before) {
    return;
  }
  auto after = std::make_shared<GraphTruth>(*before);
  change(*after);
  const std::lock_guard lock(state().mutex);
  state().graphs[exec] = std::move(after);
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
void set_kernel(GraphTruth& truth, CUgraphNode node, const Parameters& given) {
  CUfunction function = given.func;
  if constexpr (requires { given.kern; }) {
    function = function ? function : reinterpret_cast<CUfunction>(given.kern);
  }
  if (function) {
    truth.set_kernel(node, function, as_newest(given));
  } else {
    truth.set_unknown(node);
  }
}

void set_node(GraphTruth& truth, CUgraphNode node, const CUgraphNodeParams& given) {
  if (given.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    set_kernel(truth, node, given.kernel);
  } else if (given.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    truth.set_copy(node, given.memcpy.copyParams);
  } else if (given.type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = given.memset.dst;
    fill.pitch = given.memset.pitch;
    fill.value = given.memset.value;
    fill.elementSize = given.memset.elementSize;
    fill.width = given.memset.width;
    fill.height = given.memset.height;
    truth.set_fill(node, fill);
  } else if (given.type == CU_GRAPH_NODE_TYPE_GRAPH) {
    truth.set_child(node, given.graph.graph);
  } else if (given.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    truth.set_unknown(node);
  }
}

template <bool kPerThread>
CUresult on_cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log_buffer, size_t buffer_size) {
  const CUresult result = forward(real<false>().cuGraphInstantiate, exec, graph, error_node, log_buffer, buffer_size);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log_buffer, size_t buffer_size) {
  const CUresult result = forward(real<false>().cuGraphInstantiate_v2, exec, graph, error_node, log_buffer, buffer_size);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  const CUresult result = forward(real<false>().cuGraphInstantiateWithFlags, exec, graph, flags);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  const CUresult result = forward(real<kPerThread>().cuGraphInstantiateWithParams, exec, graph, parameters);
  if (result == CUDA_SUCCESS && exec) {
    instantiated(*exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* update) {
  const CUresult result = forward(real<false>().cuGraphExecUpdate, exec, graph, error_node, update);
  if (result == CUDA_SUCCESS) {
    updated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const CUresult result = forward(real<false>().cuGraphExecUpdate_v2, exec, graph, info);
  if (result == CUDA_SUCCESS) {
    updated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecKernelNodeSetParams, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, [&](GraphTruth& truth) { set_kernel(truth, node, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecKernelNodeSetParams_v2, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, [&](GraphTruth& truth) { set_kernel(truth, node, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context) {
  const CUresult result = forward(real<false>().cuGraphExecMemcpyNodeSetParams, exec, node, copy, context);
  if (result == CUDA_SUCCESS && copy) {
    changed(exec, [&](GraphTruth& truth) { truth.set_copy(node, *copy); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
  const CUresult result = forward(real<false>().cuGraphExecMemsetNodeSetParams, exec, node, fill, context);
  if (result == CUDA_SUCCESS && fill) {
    changed(exec, [&](GraphTruth& truth) { truth.set_fill(node, *fill); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const CUresult result = forward(real<false>().cuGraphExecChildGraphNodeSetParams, exec, node, child);
  if (result == CUDA_SUCCESS) {
    changed(exec, [&](GraphTruth& truth) { truth.set_child(node, child); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecNodeSetParams, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, [&](GraphTruth& truth) { set_node(truth, node, *parameters); });
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const CUresult result = forward(real<false>().cuGraphNodeSetEnabled, exec, node, enabled);
  if (result == CUDA_SUCCESS) {
    changed(exec, [&](GraphTruth& truth) { truth.set_enabled(node, enabled != 0); });
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
    const std::lock_guard lock(state().mutex);
    state().graphs.erase(exec);
  }
  return forward(real<false>().cuGraphExecDestroy, exec);
}

}  // namespace

void describe_graph(CUgraphExec exec, Execution& execution) noexcept try {
  std::shared_ptr<const GraphTruth::Launch> launch;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().graphs.find(exec);
    if (found != state().graphs.end()) {
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
  state().mutex.renew();
  abandon_captures_in_child();
}

}  // namespace deepum::hooks

#define HOOKS_GRAPH
#include "exports.inc"
