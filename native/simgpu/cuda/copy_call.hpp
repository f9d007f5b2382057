// What all copy calls share.
#pragma once

#include "operation.hpp"

namespace deepum::simgpu {

// What the call's name says of an address; any: by the address.
enum class Side { device, host, any };

// Checks the box and hands it to the stream. Waits where the real driver does: synchronous calls
// that involve host memory, and asynchronous ones with pageable host memory (CUDA driver API, "API
// synchronization behavior").
CUresult copy_call(CUstream handle, CopyWork work, Side destination, Side source,
                   bool asynchronous);

// The box that the structure describes, and what it says of its ends. CUDA_ERROR_NOT_SUPPORTED for
// arrays (texture memory).
CUresult box_of(const CUDA_MEMCPY3D& copy, const char* name, CopyWork& work, Side& destination,
                Side& source);

inline CopyWork linear(std::uint64_t destination, std::uint64_t source, std::size_t bytes) {
  CopyWork work;
  work.destination = destination;
  work.source = source;
  work.width = bytes;
  return work;
}

}  // namespace deepum::simgpu
