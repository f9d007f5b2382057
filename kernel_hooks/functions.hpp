// What we know of a kernel: an identity that is the same in every run, and where its parameters may
// hold pointers.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "tensor_lists.hpp"

namespace deepum::hooks {

struct KernelFunction {
  // Eight bytes of a parameter that may be a pointer: at `within` bytes of parameter number
  // `parameter`, `offset` bytes into the buffer.
  struct Slot {
    std::uint16_t parameter;
    std::uint16_t within;
    std::uint32_t offset;
  };
  CUfunction handle = nullptr;
  mutable std::atomic<std::uint32_t> epoch{0};  // up to which unload the driver confirmed all this
  std::uint32_t slot_count = 0;
  std::uint64_t identity = 0;  // hash of the name and the parameter layout
  bool layout_known = false;
  bool sparse = false;  // sparse_kernels.hpp
  // Of a foreach kernel: its first parameter, whose slots come first, one for each 8 bytes.
  TensorLists tensor_lists;
  std::unique_ptr<Slot[]> slots;
};

// Lock-free once a handle is known; asks the driver for the name and layout at first sight, and
// again after any module was unloaded (handles are reused). Accepts a CUkernel cast to CUfunction,
// as launches do. Never null: an unanswered query leaves a function without slots.
const KernelFunction& kernel_function(CUfunction handle) noexcept;
// The same for a launch to come, which has no gate if it is the function's first.
const KernelFunction& launched_function(CUfunction handle) noexcept;

// This handle is a CUkernel, not a CUfunction.
void kernel_handle_seen(CUkernel kernel, CUlibrary library) noexcept;
// A module or context went away (null), or this library.
void modules_changed(CUlibrary library) noexcept;
void abandon_functions_in_child() noexcept;

}  // namespace deepum::hooks
