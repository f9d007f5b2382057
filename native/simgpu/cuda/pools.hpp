// Memory pools: stream-ordered allocation.
#pragma once

#include <vector>

#include "memory_calls.hpp"
#include "streams.hpp"

struct CUmemPoolHandle_st {
  CUmemPoolProps properties{};
  int device = 0;
  bool standard = false;  // a place's default pool: never destroyed
  deepum::simgpu::MemoryKind kind = deepum::simgpu::MemoryKind::device;
  std::uint64_t threshold = 0;  // bytes that stay with the pool when the program synchronises
  int flags[3] = {1, 1, 1};     // reuse policies, as set; the first is what is done
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;

  // Freed in stream order, not given back: usable on the same stream at once, on others when the
  // event is complete.
  struct Freed {
    deepum::simgpu::Allocation allocation;
    std::uint64_t stream;  // its unique number
    deepum::um_model::Event event;
  };
  std::vector<Freed> freed;
};

namespace deepum::simgpu {

// Places (pool_places.cpp): a device, the host or a node of it, or, for managed memory, none in
// particular.
bool valid_place(const State& state, const CUmemLocation& location, CUmemAllocationType type);
CUmemoryPool make_pool(State& state, const CUmemLocation& location, CUmemAllocationType type);
CUmemoryPool default_pool(State& state, int device);
CUmemoryPool current_pool(State& state, int device);  // that cuMemAllocAsync takes from
// It goes away; where it was in use the default takes its place.
void forget_pool(State& state, CUmemoryPool pool);

// Gives back what the pools hold above their thresholds and nobody uses any more. At the program's
// synchronisations.
void trim_pools(State& state, um_model::Host host);

// The allocation is released behind the pool's back (cuMemFree).
void forget_in_pool(const Allocation& allocation);

}  // namespace deepum::simgpu
