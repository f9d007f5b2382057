// What an executable graph does, node by node, so that a node that is given other arguments takes the place of what it was. Cheap to
// copy: a change is made on a copy, which others see when it is complete.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "captures.hpp"
#include "execution.hpp"

namespace deepum::hooks {

class GraphTruth {
 public:
  // What the graph's nodes do; asks the driver. `extents`: what its pointers lay in when it was captured, null if it was not.
  GraphTruth(CUgraph graph, std::shared_ptr<const CapturedExtents> extents);

  // The nodes are those of the graph that was instantiated. One that is not known comes on top, and what the launch does is partly unknown.
  void set_kernel(CUgraphNode node, CUfunction function, const CUDA_KERNEL_NODE_PARAMS& parameters);
  void set_copy(CUgraphNode node, const CUDA_MEMCPY3D& copy);
  void set_fill(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS& fill);
  void set_child(CUgraphNode node, CUgraph child);
  void set_unknown(CUgraphNode node);
  void set_enabled(CUgraphNode node, bool enabled);
  // The graph took the place of this one, whose nodes still name its own: they correspond in the order in which graphs list them.
  void take_names_of(const GraphTruth& before);

  // The union of what its nodes do, as it is to be told at each launch. Asks no driver; one thread at a time.
  struct Launch {
    struct Pointer {
      std::uint64_t address;
      CapturedExtent extent;  // range 0: what the address lies in is looked up at each launch
    };
    struct Bytes {
      std::uint64_t address;
      std::uint64_t bytes;
    };
    std::uint64_t identity = 0;
    std::vector<Pointer> pointers;
    std::vector<Bytes> bytes;
    bool partial = false;
  };
  std::shared_ptr<const Launch> launch();

 private:
  struct Node {
    std::shared_ptr<const Launch> does;
    bool enabled = true;
  };
  using Places = std::unordered_map<CUgraphNode, std::size_t>;

  void read(CUgraph graph, int depth, Launch& into) const;
  void read_node(CUgraphNode node, int depth, Launch& into) const;
  void add_kernel(CUfunction function, const CUDA_KERNEL_NODE_PARAMS& parameters, Launch& into) const;
  Node& at(CUgraphNode node);
  template <typename Fill>
  void replace(CUgraphNode node, Fill fill);

  std::vector<Node> nodes_;
  std::shared_ptr<const Places> places_;
  std::shared_ptr<const CapturedExtents> extents_;
  std::shared_ptr<const Launch> launch_;  // null: something changed since
  bool partial_ = false;
};

}  // namespace deepum::hooks
