// What a launch of Reduce.cuh's reduce_kernel says of its operands.
#pragma once

#include <optional>
#include <vector>

#include "launch_facts.hpp"

namespace deepum::simgpu {

// `inputs` elements for each of `outputs` results. source: where in the parameters the input's
// pointer is, behind which the results' are. exact: the dimensions are known; strides in bytes.
// element: bytes of what is accumulated, of which the results are at most; source_element: of what
// is read.
struct Reduction {
  std::uint64_t element = 0, source_element = 0, inputs = 0, outputs = 0, parts = 0;
  std::uint32_t source = 0;
  bool exact = false;
  std::vector<Dimension> input, output;
};

// nullopt: another kernel, or one whose parameters are not understood.
std::optional<Reduction> reduction_of(const Facts& facts);

}  // namespace deepum::simgpu
