#include "graph_truth.hpp"

#include <set>
#include <tuple>
#include <utility>

#include "allocations.hpp"
#include "arguments.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

constexpr int kMostDepth = 8;

// The order in which a graph lists its nodes is not promised.
void combine(GraphTruth::Launch& launch, std::uint64_t hash) noexcept { launch.identity += hash; }

void add_bytes(GraphTruth::Launch& launch, std::uint64_t address, std::uint64_t count,
               std::uint64_t position) {
  runtime::Extent extent;
  if (runtime::Allocations::instance().range_of(address, count, &extent)) {
    launch.bytes.push_back({address, count});
    combine(launch, mix(extent.name, extent.offset ^ position << 48));
  }
}

void add_copy(const CUDA_MEMCPY3D& copy, GraphTruth::Launch& into) {
  const std::uint64_t rows = copy.Height ? copy.Height : 1;
  const std::uint64_t planes = copy.Depth ? copy.Depth : 1;
  const auto span = [&](std::uint64_t pitch, std::uint64_t height) {
    return copy.WidthInBytes + (rows - 1) * pitch + (planes - 1) * pitch * (height ? height : rows);
  };
  const auto first = [](std::uint64_t base, std::uint64_t x, std::uint64_t y, std::uint64_t z,
                        std::uint64_t pitch,
                        std::uint64_t height) { return base + x + (y + z * height) * pitch; };
  const std::uint64_t to = copy.dstMemoryType == CU_MEMORYTYPE_HOST
                               ? reinterpret_cast<std::uint64_t>(copy.dstHost)
                               : copy.dstDevice;
  const std::uint64_t from = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                                 ? reinterpret_cast<std::uint64_t>(copy.srcHost)
                                 : copy.srcDevice;
  add_bytes(into, first(to, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight),
            span(copy.dstPitch, copy.dstHeight), 1);
  add_bytes(into,
            first(from, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight),
            span(copy.srcPitch, copy.srcHeight), 2);
}

void add_fill(const CUDA_MEMSET_NODE_PARAMS& fill, GraphTruth::Launch& into) {
  const std::uint64_t rows = fill.height ? fill.height : 1;
  add_bytes(into, fill.dst, fill.width * fill.elementSize + (rows - 1) * fill.pitch, 3);
}

}  // namespace

GraphTruth::GraphTruth(CUgraph graph, std::shared_ptr<const CapturedExtents> extents)
    : instantiated_(std::make_shared<const Places>()), extents_(std::move(extents)) {
  std::size_t count = 0;
  Inside guard;
  if (!helpers.GraphGetNodes || !helpers.GraphNodeGetType ||
      helpers.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    partial_ = true;
    return;
  }
  std::vector<CUgraphNode> handles(count);
  partial_ = count != 0 && helpers.GraphGetNodes(graph, handles.data(), &count) != CUDA_SUCCESS;
  for (const CUgraphNode handle : handles) {
    auto does = std::make_shared<Launch>();
    read_node(handle, 0, *does);
    places_.emplace(handle, nodes_.size());
    nodes_.push_back({std::move(does)});
  }
  instantiated_ = std::make_shared<const Places>(places_);
}

// A child's nodes count as one.
void GraphTruth::read(CUgraph graph, int depth, Launch& into) const {
  std::size_t count = 0;
  if (depth > kMostDepth || !helpers.GraphGetNodes ||
      helpers.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    into.partial = true;
    return;
  }
  std::vector<CUgraphNode> handles(count);
  if (count != 0 && helpers.GraphGetNodes(graph, handles.data(), &count) != CUDA_SUCCESS) {
    into.partial = true;
    return;
  }
  for (const CUgraphNode handle : handles) {
    read_node(handle, depth, into);
  }
}

void GraphTruth::read_node(CUgraphNode node, int depth, Launch& into) const {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool known = helpers.GraphNodeGetType(node, &type) == CUDA_SUCCESS;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS parameters{};
    known = helpers.GraphKernelNodeGetParams &&
            helpers.GraphKernelNodeGetParams(node, &parameters) == CUDA_SUCCESS;
    if (known) {
      add_kernel(parameters.func ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern),
                 parameters, into);
    }
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    CUDA_MEMCPY3D copy{};
    known = helpers.GraphMemcpyNodeGetParams &&
            helpers.GraphMemcpyNodeGetParams(node, &copy) == CUDA_SUCCESS;
    if (known) {
      add_copy(copy, into);
    }
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    known = helpers.GraphMemsetNodeGetParams &&
            helpers.GraphMemsetNodeGetParams(node, &fill) == CUDA_SUCCESS;
    if (known) {
      add_fill(fill, into);
    }
  } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    CUgraph child = nullptr;
    known = helpers.GraphChildGraphNodeGetGraph &&
            helpers.GraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS;
    if (known) {
      read(child, depth + 1, into);
    }
  } else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    known = false;  // its bodies may run or not
  }
  into.partial |= !known;
}

void GraphTruth::add_kernel(CUfunction handle, const CUDA_KERNEL_NODE_PARAMS& node,
                            Launch& into) const {
  const KernelFunction& function = kernel_function(handle);
  const unsigned grid[3] = {node.gridDimX, node.gridDimY, node.gridDimZ};
  const unsigned block[3] = {node.blockDimX, node.blockDimY, node.blockDimZ};
  Execution execution(launch_identity(function, grid, block, node.sharedMemBytes));
  add_arguments(execution, function, node.gridDimX, node.kernelParams, node.extra);
  combine(into, execution.hash());
  const bool had = each_argument(
      function, node.gridDimX, node.kernelParams, node.extra,
      [&](std::uint64_t value, std::uint32_t) {
        runtime::Extent extent;
        if (!runtime::Allocations::instance().lookup(value, &extent)) {
          return;
        }
        const auto captured = extents_ ? extents_->find(value) : CapturedExtents::const_iterator{};
        if (!extents_ || captured == extents_->end()) {
          into.pointers.push_back({value, {0, 0}});
          return;
        }
        for (const CapturedExtent& each : captured->second) {
          into.pointers.push_back({value, each});
        }
      });
  into.partial |= !had || !function.layout_known;
}

GraphTruth::Does GraphTruth::kernel(CUfunction function,
                                    const CUDA_KERNEL_NODE_PARAMS& parameters) const {
  auto does = std::make_shared<Launch>();
  add_kernel(function, parameters, *does);
  return does;
}

GraphTruth::Does GraphTruth::copy(const CUDA_MEMCPY3D& copy) {
  auto does = std::make_shared<Launch>();
  add_copy(copy, *does);
  return does;
}

GraphTruth::Does GraphTruth::fill(const CUDA_MEMSET_NODE_PARAMS& fill) {
  auto does = std::make_shared<Launch>();
  add_fill(fill, *does);
  return does;
}

GraphTruth::Does GraphTruth::child(CUgraph graph) const {
  auto does = std::make_shared<Launch>();
  Inside guard;
  read(graph, 1, *does);
  return does;
}

GraphTruth::Does GraphTruth::unknown() {
  auto does = std::make_shared<Launch>();
  does->partial = true;
  return does;
}

GraphTruth::Node& GraphTruth::at(CUgraphNode node) {
  launch_.reset();
  if (const auto known = places_.find(node); known != places_.end()) {
    return nodes_[known->second];
  }
  if (const auto known = instantiated_->find(node);
      known != instantiated_->end() && known->second < nodes_.size()) {
    return nodes_[known->second];
  }
  partial_ = true;
  nodes_.push_back({std::make_shared<const Launch>()});
  places_.emplace(node, nodes_.size() - 1);
  return nodes_.back();
}

void GraphTruth::set(CUgraphNode node, Does does) { at(node).does = std::move(does); }

void GraphTruth::set_enabled(CUgraphNode node, bool enabled) { at(node).enabled = enabled; }

GraphTruth::Does GraphTruth::launch() {
  if (launch_) {
    return launch_;
  }
  auto all = std::make_shared<Launch>();
  std::set<std::tuple<std::uint64_t, deepum_block_range, std::uint32_t>> seen;
  all->partial = partial_;
  for (const Node& node : nodes_) {
    if (!node.enabled) {
      continue;
    }
    const Launch& does = *node.does;
    combine(*all, does.identity);
    all->partial |= does.partial;
    all->bytes.insert(all->bytes.end(), does.bytes.begin(), does.bytes.end());
    for (const Launch::Pointer& pointer : does.pointers) {
      if (seen.emplace(pointer.address, pointer.extent.range, pointer.extent.generation).second) {
        all->pointers.push_back(pointer);
      }
    }
  }
  launch_ = all;
  return launch_;
}

}  // namespace deepum::hooks
