// Kernels that torch.compile makes: triton_poi_ (pointwise), triton_red_ and triton_per_
// (reductions). Their code names neither tensors nor types, but their parameters end in the numbers
// of elements by dimension (xnumel, ynumel, r0_numel), of 4 bytes, behind the pointers and the
// sizes of dynamic shapes, of 8. A number that is 1 is no parameter.
#include <algorithm>

#include "extents.hpp"
#include "families.hpp"

namespace deepum::simgpu {

bool describe_triton(const Facts& facts, Touch& touch) {
  if (!facts.kernel().starts_with("triton_poi_") && !facts.kernel().starts_with("triton_red_") &&
      !facts.kernel().starts_with("triton_per_"))
    return false;
  constexpr std::uint64_t kElement = 4, kMost = 1ull << 40;
  std::uint64_t elements = 1;
  bool any = false;
  for (std::size_t i = 0; i < facts.parameters(); ++i) {
    if (facts.size(i) != 4 || facts.integer(i) == 0) continue;
    elements = std::min(elements * facts.integer(i), kMost);
    any = true;
  }
  if (!any) return false;
  for (const Pointer& pointer : facts.pointers()) {
    // Biases and weights are met in each row: they end where they were last seen to.
    const std::uint64_t known = Extents::of_process().bytes_at(pointer.address);
    std::uint64_t bytes = known != 0 ? std::min(elements * kElement, known) : elements * kElement;
    for (const Pointer& other : facts.pointers()) {
      if (other.address > pointer.address) bytes = std::min(bytes, other.address - pointer.address);
    }
    touch.both(&pointer, bytes);
    touch.perhaps(&pointer, bytes);
  }
  touch.flops(static_cast<double>(elements * facts.pointers().size()));
  return true;
}

}  // namespace deepum::simgpu
