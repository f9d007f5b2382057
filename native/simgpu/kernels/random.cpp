// Random numbers (DistributionTemplates.h) and the scale of mixed precision (AmpKernels.cu).
#include "families.hpp"
#include "mangled.hpp"

namespace deepum::simgpu {
namespace {

constexpr double kFlopsOfANumber = 25;  // ten rounds of Philox make four numbers; their transform

}  // namespace

bool describe_random(const Facts& facts, Touch& touch) {
  // elements, state of the generator, distribution, transform.
  if (facts.named("distribution_elementwise_grid_stride_kernel")) {
    std::vector<std::uint64_t> types =
        template_type_bytes(facts.kernel(), "distribution_nullary_kernel");
    if (types.empty())
      types = template_type_bytes(facts.kernel(), "distribution_elementwise_grid_stride_kernel");
    const std::uint64_t n = facts.integer(0), e = types.empty() ? facts.element_bytes() : types[0];
    // In the transform, behind strides if it has any.
    const std::vector<Pointer> out = facts.pointers_in(facts.parameters() - 1);
    if (out.empty()) return false;
    touch.write(&out.back(), n * e);
    // Captured in a graph: seed and offset in memory.
    for (const Pointer& state : facts.pointers_in(1)) touch.read(&state, 8);
    touch.flops(kFlopsOfANumber * static_cast<double>(n));
    return true;
  }
  // keys, values, mask, number, state of the generator.
  if (facts.named("randperm_handle_duplicate_keys_kernel")) {
    const std::uint64_t n = facts.integer(3);
    touch.read(facts.pointer(0), n * facts.element_bytes());
    touch.both(facts.pointer(1), n * 8);
    return true;
  }
  if (facts.named("amp_update_scale_cuda_kernel")) {  // scale, growth tracker, infinity found
    touch.add(facts.pointer(0), 0, 4, true, true);
    touch.add(facts.pointer(1), 0, 4, true, true);
    touch.read(facts.pointer(2), 4);
    return true;
  }
  return false;
}

}  // namespace deepum::simgpu
