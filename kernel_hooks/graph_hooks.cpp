#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arguments.hpp"
#include "forkable_mutex.hpp"
#include "graphs.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

// Addresses, not ranges: which PyTorch block an address lies in is asked anew at each launch.
struct GraphTruth {
  std::uint64_t identity = 0;
  std::vector<std::uint64_t> pointers;  // distinct candidates of kernel arguments that pointed at managed memory
  struct Bytes {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  std::vector<Bytes> written;
  std::vector<Bytes> read;
  bool partial = false;
};

struct State {
  ForkableMutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<const GraphTruth>> graphs;
};
State& state() noexcept { return immortal<State>(); }

class Reader {
 public:
  explicit Reader(GraphTruth& truth) : truth_(truth) {}

  void read(CUgraph graph, int depth) {
    std::size_t count = 0;
    if (depth > 8 || !helpers.GraphGetNodes || !helpers.GraphNodeGetType || helpers.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
      truth_.partial = true;
      return;
    }
    std::vector<CUgraphNode> nodes(count);
    if (count && helpers.GraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) {
      truth_.partial = true;
    }
    for (const CUgraphNode node : nodes) {
      read_node(node, depth);
    }
  }

  void kernel(CUfunction handle, const CUDA_KERNEL_NODE_PARAMS& node) {
    const KernelFunction& function = kernel_function(handle);
    const unsigned grid[3] = {node.gridDimX, node.gridDimY, node.gridDimZ};
    const unsigned block[3] = {node.blockDimX, node.blockDimY, node.blockDimZ};
    Execution execution(launch_identity(function, grid, block, node.sharedMemBytes));
    add_arguments(execution, function, node.gridDimX, node.kernelParams, node.extra);
    combine(execution.hash());
    const bool had =
        each_argument(function, node.gridDimX, node.kernelParams, node.extra, [&](std::uint64_t value, std::uint32_t) { pointer(value); });
    if (!had || !function.layout_known) {
      truth_.partial = true;
    }
  }

 private:
  // The order in which a graph lists its nodes is not promised.
  void combine(std::uint64_t hash) noexcept { truth_.identity += hash; }

  void pointer(std::uint64_t value) {
    runtime::Extent extent;
    if (runtime::Allocations::instance().lookup(value, &extent) && seen_.insert(value).second) {
      truth_.pointers.push_back(value);
    }
  }

  void bytes(std::vector<GraphTruth::Bytes>& list, std::uint64_t address, std::uint64_t count, std::uint64_t position) {
    runtime::Extent extent;
    if (!runtime::Allocations::instance().range_of(address, count, &extent)) {
      return;
    }
    list.push_back({address, count});
    combine(mix(extent.name, extent.offset ^ position << 48));
  }

  void read_node(CUgraphNode node, int depth) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (helpers.GraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      truth_.partial = true;
    }
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CUDA_KERNEL_NODE_PARAMS parameters{};
      if (!helpers.GraphKernelNodeGetParams || helpers.GraphKernelNodeGetParams(node, &parameters) != CUDA_SUCCESS) {
        truth_.partial = true;
        return;
      }
      kernel(parameters.func ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern), parameters);
    } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      CUDA_MEMCPY3D copy{};
      if (!helpers.GraphMemcpyNodeGetParams || helpers.GraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) {
        truth_.partial = true;
        return;
      }
      const std::uint64_t rows = copy.Height ? copy.Height : 1;
      const std::uint64_t planes = copy.Depth ? copy.Depth : 1;
      const auto span = [&](std::uint64_t pitch, std::uint64_t height) {
        return copy.WidthInBytes + (rows - 1) * pitch + (planes - 1) * pitch * (height ? height : rows);
      };
      const auto first = [](std::uint64_t base, std::uint64_t x, std::uint64_t y, std::uint64_t z, std::uint64_t pitch,
                            std::uint64_t height) { return base + x + (y + z * height) * pitch; };
      const std::uint64_t to = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.dstHost) : copy.dstDevice;
      const std::uint64_t from = copy.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.srcHost) : copy.srcDevice;
      bytes(truth_.written, first(to, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight),
            span(copy.dstPitch, copy.dstHeight), 1);
      bytes(truth_.read, first(from, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight),
            span(copy.srcPitch, copy.srcHeight), 2);
    } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
      CUDA_MEMSET_NODE_PARAMS set{};
      if (!helpers.GraphMemsetNodeGetParams || helpers.GraphMemsetNodeGetParams(node, &set) != CUDA_SUCCESS) {
        truth_.partial = true;
        return;
      }
      const std::uint64_t rows = set.height ? set.height : 1;
      bytes(truth_.written, set.dst, set.width * set.elementSize + (rows - 1) * set.pitch, 3);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      if (helpers.GraphChildGraphNodeGetGraph && helpers.GraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) {
        read(child, depth + 1);
      } else {
        truth_.partial = true;
      }
    } else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      truth_.partial = true;  // its bodies may run or not
    }
  }

  GraphTruth& truth_;
  std::unordered_set<std::uint64_t> seen_;
};

void instantiated(CUgraphExec exec, CUgraph graph) noexcept try {
  auto truth = std::make_shared<GraphTruth>();
  {
    Inside guard;
    Reader(*truth).read(graph, 0);
  }
  const std::lock_guard lock(state().mutex);
  state().graphs[exec] = std::move(truth);
} catch (...) {
  return;
}

// One node of the executable graph got other arguments: theirs come on top of what was known.
template <typename Parameters>
void changed(CUgraphExec exec, CUfunction handle, const Parameters* parameters) noexcept try {
  std::shared_ptr<const GraphTruth> before;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().graphs.find(exec);
    if (found != state().graphs.end()) {
      before = found->second;
    }
  }
  if (!before || !parameters || !handle) {
    return;
  }
  auto after = std::make_shared<GraphTruth>(*before);
  CUDA_KERNEL_NODE_PARAMS node{};
  node.gridDimX = parameters->gridDimX;
  node.gridDimY = parameters->gridDimY;
  node.gridDimZ = parameters->gridDimZ;
  node.blockDimX = parameters->blockDimX;
  node.blockDimY = parameters->blockDimY;
  node.blockDimZ = parameters->blockDimZ;
  node.sharedMemBytes = parameters->sharedMemBytes;
  node.kernelParams = parameters->kernelParams;
  node.extra = parameters->extra;
  Reader(*after).kernel(handle, node);
  after->partial = true;
  const std::lock_guard lock(state().mutex);
  state().graphs[exec] = std::move(after);
} catch (...) {
  return;
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
    instantiated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const CUresult result = forward(real<false>().cuGraphExecUpdate_v2, exec, graph, info);
  if (result == CUDA_SUCCESS) {
    instantiated(exec, graph);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecKernelNodeSetParams, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, parameters->func, parameters);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  const CUresult result = forward(real<false>().cuGraphExecKernelNodeSetParams_v2, exec, node, parameters);
  if (result == CUDA_SUCCESS && parameters) {
    changed(exec, parameters->func ? parameters->func : reinterpret_cast<CUfunction>(parameters->kern), parameters);
  }
  return result;
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

void describe_graph(CUgraphExec exec, Execution& execution) noexcept {
  std::shared_ptr<const GraphTruth> truth;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().graphs.find(exec);
    if (found != state().graphs.end()) {
      truth = found->second;
    }
  }
  if (!truth) {
    execution.mark_partial();
    return;
  }
  execution.mix_in(truth->identity);
  if (truth->partial) {
    execution.mark_partial();
  }
  for (const auto& bytes : truth->written) {
    execution.add_access(bytes.address, bytes.bytes, Execution::Access::kUnknown);
  }
  for (const auto& bytes : truth->read) {
    execution.add_access(bytes.address, bytes.bytes, Execution::Access::kUnknown);
  }
  for (const std::uint64_t pointer : truth->pointers) {
    execution.add_access(pointer, 0, Execution::Access::kUnknown);
  }
}

void abandon_graphs_in_child() noexcept { state().mutex.renew(); }

}  // namespace deepum::hooks

#define HOOKS_GRAPH
#include "exports.inc"
