#include "truth.hpp"

#include "extents.hpp"
#include "families.hpp"

namespace deepum::simgpu {
namespace {

// The general rule, for kernels of no known family: every pointer leads to one element of 4 bytes for each thread, read and written.
void describe_anything(const Facts& facts, Touch& touch) {
  for (const Pointer& pointer : facts.pointers()) touch.both(&pointer, facts.threads() * 4);
}

}  // namespace

um_model::Kernel describe_launch(const LaunchView& launch, const FindAllocation& find) {
  um_model::Kernel kernel;
  const Facts facts(launch, find);
  Touch touch(kernel);
  if (describe_elementwise(facts, touch) || describe_multi_tensor(facts, touch)) {
    for (const um_model::Access& access : kernel.accesses) Extents::of_process().note(access.range.address, access.range.bytes);
    return kernel;
  }
  if (!describe_reduction(facts, touch) && !describe_rows(facts, touch) && !describe_gather(facts, touch) &&
      !describe_attention(facts, touch))
    describe_anything(facts, touch);
  return kernel;
}

}  // namespace deepum::simgpu
