// What a launch of a compiled CUDA kernel touches in truth and costs, from its name, grid and
// parameter values: element counts, strides, sampled rows. Independent of anything the shim
// computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "../host_module.h"
#include "engine.hpp"
#include "image.hpp"

namespace deepum::simgpu {

struct LaunchView {
  std::string_view kernel;  // ELF symbol, mangled
  const ParameterLayout& layout;
  const std::uint8_t* parameters;  // layout.bytes of packed values
  std::uint32_t grid[3];
  std::uint32_t block[3];
  // Of this launch in the process, from 0: seeds the rows that a gather samples.
  std::uint64_t ordinal;
};

// The driver allocation that holds an address, managed or not; nullopt if none.
using FindAllocation = std::function<std::optional<um_model::Range>(std::uint64_t address)>;

// accesses, perhaps_written, flops, matrix_units, device_bytes filled; effect empty. *known becomes
// false where no family knows the kernel, so that the general rule was followed; the caller then
// takes its writes for unknown (um_model::Kernel::unknown). A family that knows a kernel's inputs,
// but not all that it writes, tells the rest by Touch::perhaps: such memory no longer counts as
// unwritten, at no cost.
um_model::Kernel describe_launch(const LaunchView& launch, const FindAllocation& find,
                                 bool* known = nullptr);

}  // namespace deepum::simgpu
