// Ranges of managed memory and the places they can be in.
#pragma once

#include <functional>

#include "state.hpp"

namespace deepum::simgpu {

// false: no such place. device: an ordinal, or um_model::kCpu.
bool location_of(const State& state, CUmemLocation location, int& device);
// As in the calls of CUDA 8: CU_DEVICE_CPU or an ordinal.
CUmemLocation location_from_device(CUdevice device);

// CUDA_ERROR_INVALID_VALUE unless all of it is managed memory.
CUresult managed_range(State& state, CUdeviceptr address, std::size_t bytes,
                       um_model::Range& range);

void for_allocations(State& state, um_model::Range range,
                     const std::function<void(Allocation&)>& visit);

}  // namespace deepum::simgpu
