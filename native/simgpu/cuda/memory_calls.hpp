// Making and freeing allocations, for the calls of several files.
#pragma once

#include "state.hpp"

namespace deepum::simgpu {

// The smallest thing a program may ask of an allocation is one byte; sizes above this are refused
// at once.
inline constexpr std::uint64_t kMostBytes = 1ull << 46;

// CUDA_ERROR_OUT_OF_MEMORY when the card is full: plain device memory drives managed memory out,
// but not other device memory.
CUresult allocate_device(State& state, CUcontext context, int device, std::uint64_t bytes,
                         CUmemoryPool pool, std::uint64_t& address);
CUresult allocate_managed(State& state, CUcontext context, int device, std::uint64_t bytes,
                          unsigned flags, CUmemoryPool pool, std::uint64_t& address);
CUresult allocate_host(State& state, CUcontext context, std::uint64_t bytes, unsigned flags,
                       CUmemoryPool pool, std::uint64_t& address);

// Memory of another process: a file of whole blocks, and the allocation in them. It counts on this
// process's card too.
struct SharedMemory {
  int file;
  std::uint64_t id, mapped, offset, bytes;
  int device;
};
// The file belongs to the allocation if this succeeds.
CUresult open_shared(State& state, CUcontext context, const SharedMemory& of,
                     std::uint64_t& address);

// Work that uses it must be complete.
void release_allocation(State& state, std::uint64_t base);

}  // namespace deepum::simgpu
