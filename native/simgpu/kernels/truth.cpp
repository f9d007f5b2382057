#include "truth.hpp"

#include "extents.hpp"
#include "families.hpp"

namespace deepum::simgpu {
namespace {

// The general rule, for kernels of no known family: every pointer leads to one element of 4 bytes
// for each thread, read and written. Some write more for each thread (a fused LSTM cell four
// gates), so that what lies behind may be new too.
void describe_anything(const Facts& facts, Touch& touch) {
  constexpr std::uint64_t kMostElements = 16;
  for (const Pointer& pointer : facts.pointers()) {
    touch.both(&pointer, facts.threads() * 4);
    touch.perhaps(&pointer, facts.threads() * 4 * kMostElements);
  }
}

}  // namespace

um_model::Kernel describe_launch(const LaunchView& launch, const FindAllocation& find,
                                 bool* known) {
  um_model::Kernel kernel;
  const Facts facts(launch, find);
  Touch touch(kernel);
  if (describe_elementwise(facts, touch) || describe_multi_tensor(facts, touch)) {
    for (const um_model::Access& access : kernel.accesses)
      Extents::of_process().note(access.range.address, access.range.bytes);
    return kernel;
  }
  if (!describe_reduction(facts, touch) && !describe_rows(facts, touch) &&
      !describe_gather(facts, touch) && !describe_attention(facts, touch) &&
      !describe_windows(facts, touch) && !describe_normalisation(facts, touch) &&
      !describe_random(facts, touch)) {
    if (!describe_triton(facts, touch)) describe_anything(facts, touch);
    if (known != nullptr) *known = false;
  }
  return kernel;
}

}  // namespace deepum::simgpu
