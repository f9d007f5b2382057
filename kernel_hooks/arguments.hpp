// The values of a launch's parameters that may be pointers, from kernelParams or from the extra
// buffer.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "functions.hpp"

namespace deepum::hooks {

// Calls visit(value, slot number) for each; of a foreach kernel's lists only for the tensors that
// this launch's blocks (gridDim.x) work on. False: the arguments are not to be had.
template <typename Visit>
bool each_argument(const KernelFunction& function, unsigned blocks, void* const* parameters,
                   void* const* extra, Visit visit) {
  const KernelFunction::Slot* slots = function.slots.get();
  const unsigned char* buffer = nullptr;
  std::size_t bytes = 0;
  if (!parameters) {
    for (int i = 0; extra && i < 16 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = static_cast<const unsigned char*>(extra[i + 1]);
      }
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1]) {
        bytes = *static_cast<const std::size_t*>(extra[i + 1]);
      }
    }
    if (!buffer) {
      return function.slot_count == 0;
    }
  }
  const auto visit_at = [&](const unsigned char* at, std::uint32_t slot) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    visit(value, slot);
  };
  const auto visit_slots = [&](std::uint32_t first, std::uint32_t end) {
    if (parameters) [[likely]] {
      for (std::uint32_t i = first; i < end; ++i) {
        if (const auto* parameter =
                static_cast<const unsigned char*>(parameters[slots[i].parameter])) {
          visit_at(parameter + slots[i].within, i);
        }
      }
    } else {
      for (std::uint32_t i = first; i < end && slots[i].offset + 8 <= bytes; ++i) {
        visit_at(buffer + slots[i].offset, i);
      }
    }
  };
  std::uint32_t rest = 0;
  if (const TensorLists& known = function.tensor_lists; known.lists != 0) [[unlikely]] {
    const auto* metadata = parameters             ? static_cast<const unsigned char*>(parameters[0])
                           : bytes >= known.bytes ? buffer
                                                  : nullptr;
    if (const std::uint32_t tensors = metadata ? tensors_of_launch(known, metadata, blocks) : 0) {
      for (std::uint32_t list = 0; list < known.lists; ++list) {
        visit_slots(list * known.tensors, list * known.tensors + tensors);
      }
      if (known.steps) {
        visit_slots(known.steps / 8, known.steps / 8 + tensors);
      }
      rest = known.bytes / 8;
    }
  }
  visit_slots(rest, function.slot_count);
  return true;
}

}  // namespace deepum::hooks
