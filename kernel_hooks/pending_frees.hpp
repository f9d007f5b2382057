// Managed memory that the program freed in stream order: kept until its stream got there.
// cuMemFreeAsync itself takes only memory of the driver's pools.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "allocations.hpp"
#include "streams.hpp"

namespace deepum::hooks {

// The allocation is out of the map already.
CUresult free_in_order(const StreamRef& stream, const runtime::Allocation& allocation) noexcept;
// Memory of exactly `bytes` that was freed on this very stream, and not on one that had its handle
// before; 0: none. It stays charged.
CUdeviceptr take_pending(const StreamRef& stream, std::uint64_t bytes) noexcept;
void forget_pending_of(CUcontext context) noexcept;
void abandon_pending_in_child() noexcept;

}  // namespace deepum::hooks
