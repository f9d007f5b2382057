#pragma once

#include "state.hpp"

namespace deepum::simgpu {

inline bool valid_device(const State& state, int device) {
  return device >= 0 && static_cast<std::size_t>(device) < state.devices.size();
}

// What cuDeviceGetAttribute answers; 0 for what the simulated card does not have.
int device_attribute(const State& state, CUdevice_attribute attribute, int device);

}  // namespace deepum::simgpu
