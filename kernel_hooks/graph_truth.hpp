// What an executable graph does, node by node, so that a node that is given other arguments takes
// the place of what it was. Programs change each of thousands of nodes before a launch: what the
// node does is found out first, which asks the driver, and then takes its place.
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
  // What the graph's nodes do; asks the driver. `extents`: what its pointers lay in when it was
  // captured, null if it was not.
  GraphTruth(CUgraph graph, std::shared_ptr<const CapturedExtents> extents);

  // What its nodes do, as it is to be told at each launch; of a launch, the union.
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
  using Does = std::shared_ptr<const Launch>;

  // What a node of this graph does that is given these. Any thread at any time; may ask the driver.
  Does kernel(CUfunction function, const CUDA_KERNEL_NODE_PARAMS& parameters) const;
  static Does copy(const CUDA_MEMCPY3D& copy);
  static Does fill(const CUDA_MEMSET_NODE_PARAMS& fill);
  Does child(CUgraph graph) const;
  static Does unknown();

  // The rest asks no driver; one thread at a time.
  // The nodes are those of the graph that was instantiated. One that is not known comes on top, and
  // what the launch does is partly unknown.
  void set(CUgraphNode node, Does does);
  void set_enabled(CUgraphNode node, bool enabled);
  // The graph took the place of this one's. The nodes that were instantiated name its own: they
  // correspond in the order in which graphs list them. Before anybody else knows of it.
  void take_names_of(const GraphTruth& before) { instantiated_ = before.instantiated_; }
  Does launch();

 private:
  struct Node {
    Does does;
    bool enabled = true;
  };
  using Places = std::unordered_map<CUgraphNode, std::size_t>;

  void read(CUgraph graph, int depth, Launch& into) const;
  void read_node(CUgraphNode node, int depth, Launch& into) const;
  void add_kernel(CUfunction function, const CUDA_KERNEL_NODE_PARAMS& parameters,
                  Launch& into) const;
  Node& at(CUgraphNode node);

  std::vector<Node> nodes_;
  Places places_;
  std::shared_ptr<const Places> instantiated_;  // places, of the graph that was
  const std::shared_ptr<const CapturedExtents> extents_;
  Does launch_;  // null: something changed since
  bool partial_ = false;
};

}  // namespace deepum::hooks
