// PyTorch's foreach kernels (multi_tensor_apply_kernel): which of the addresses in the struct that
// they take are of this launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace deepum::hooks {

// The struct holds a list of addresses for each operand, their sizes, and for each block of the
// grid the tensor it works on. It is used again from launch to launch: behind the last tensor of a
// launch stand the addresses of earlier ones. Offsets and sizes in bytes.
struct TensorLists {
  std::uint32_t lists = 0;    // 0: not such a kernel, or a layout that is not known
  std::uint32_t tensors = 0;  // room in each list
  // Where a fused optimizer's list of step counters begins; 0: none.
  std::uint32_t steps = 0;
  std::uint32_t block_to_tensor = 0;  // where the tensors of the blocks begin
  std::uint32_t index_bytes = 0;      // of each of them
  std::uint32_t blocks = 0;           // room for so many
  std::uint32_t bytes = 0;            // of all of it
};

// By the function's mangled name and the size of its first parameter; both have to fit one layout
// exactly.
TensorLists tensor_lists(std::string_view function, std::size_t first_parameter_bytes) noexcept;

// How many tensors of each list a launch of so many blocks works on; 0: it cannot be told. Blocks
// are filled in the order of the tensors (multi_tensor_apply in MultiTensorApply.cuh), so that the
// last one names the last tensor.
inline std::uint32_t tensors_of_launch(const TensorLists& known, const unsigned char* metadata,
                                       unsigned blocks) noexcept {
  if (blocks == 0 || blocks > known.blocks) {
    return 0;
  }
  const unsigned char* last =
      metadata + known.block_to_tensor + std::size_t{blocks - 1} * known.index_bytes;
  std::uint16_t tensor = *last;
  if (known.index_bytes == sizeof tensor) {
    std::memcpy(&tensor, last, sizeof tensor);
  }
  return tensor < known.tensors ? tensor + 1u : 0;
}

}  // namespace deepum::hooks
