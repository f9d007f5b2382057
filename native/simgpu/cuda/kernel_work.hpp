// From a launch to what the model needs: what it touches, what it costs, what it does to the data.
#pragma once

#include "operation.hpp"

namespace deepum::simgpu {

um_model::Kernel make_kernel(State& state, int device, const KernelWork& work);

}  // namespace deepum::simgpu
