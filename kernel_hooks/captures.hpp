// What the pointers of captured launches lay in while they were captured. PyTorch takes a graph's
// memory back as soon as the capture's tensors die, and a replay uses it all the same: by then
// nobody can tell how long the blocks were that its addresses lay in.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "functions.hpp"
#include "records.h"
#include "streams.hpp"

namespace deepum::hooks {

struct CapturedExtent {
  deepum_block_range range;
  std::uint32_t generation;  // of the range's slot
};
// By address; several where the memory was handed out anew while the capture went on. Only of
// PyTorch's memory.
using CapturedExtents = std::unordered_map<std::uint64_t, std::vector<CapturedExtent>>;

// After the driver captured a launch on the stream.
void launch_captured(const StreamRef& stream, const KernelFunction& function, unsigned blocks,
                     void* const* parameters, void* const* extra) noexcept;
// Around the end of a capture: the id that it has on the stream, 0 if none can be had, and the
// graph that came of it.
unsigned long long capture_id(CUstream stream) noexcept;
void capture_became(unsigned long long id, CUgraph graph) noexcept;
void graph_destroyed(CUgraph graph) noexcept;

// Null: nothing is known of the graph.
std::shared_ptr<const CapturedExtents> extents_of(CUgraph graph) noexcept;
// Whether the allocation that the range lies in is the one of then.
bool still_there(const CapturedExtent& extent) noexcept;
void abandon_captures_in_child() noexcept;

}  // namespace deepum::hooks
