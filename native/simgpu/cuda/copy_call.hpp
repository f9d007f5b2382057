// What all copy calls share.
#pragma once

#include "operation.hpp"

namespace deepum::simgpu {

enum class Side { device, host, any };  // what the call's name says of an address; any: by the address

// Checks the box and hands it to the stream. Waits where the real driver does: synchronous calls that involve host memory, and
// asynchronous ones with pageable host memory (CUDA driver API, "API synchronization behavior").
CUresult copy_call(CUstream handle, CopyWork work, Side destination, Side source, bool asynchronous);

inline CopyWork linear(std::uint64_t destination, std::uint64_t source, std::size_t bytes) {
  CopyWork work;
  work.destination = destination;
  work.source = source;
  work.width = bytes;
  return work;
}

}  // namespace deepum::simgpu
