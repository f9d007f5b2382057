// Functions that the stand-in does not have.
#pragma once

#include <string>
#include <vector>

#include "cuda_api.hpp"

namespace deepum::simgpu {

// Says once for each name that it is not simulated; returns CUDA_ERROR_NOT_SUPPORTED. Thread-safe,
// takes no lock of the driver's.
CUresult not_simulated(const char* name) noexcept;

// For those that say it in words of their own: adds to the names, answers whether it was not among
// them.
bool first_time(const std::string& name);

// Names so far.
std::vector<std::string> not_simulated_names();

}  // namespace deepum::simgpu
