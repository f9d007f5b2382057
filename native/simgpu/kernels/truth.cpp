#include "truth.hpp"

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
  describe_anything(facts, touch);
  return kernel;
}

}  // namespace deepum::simgpu
