// TensorIterator's pointwise kernels (CUDALoops.cuh, Loops.cuh): int N first; the first pointer is
// the output.
#include <algorithm>

#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

// Copy.cu names kernels that change the type by what they write: bfloat16_copy_kernel_cuda's lambda
// takes a float. 0: not one of them.
std::uint64_t copied_to_bytes(const Facts& facts) {
  if (facts.named("float16_copy_kernel_cuda")) return 2;  // bfloat16, too
  return facts.named("float8_copy_kernel_cuda") ? 1 : 0;
}

// Element sizes by operand, output first.
std::vector<std::uint64_t> operand_bytes(const Facts& facts, std::size_t operands) {
  // <arg1, arg2, result, op>.
  std::vector<std::uint64_t> types = template_type_bytes(facts.kernel(), "BinaryFunctor");
  if (types.size() >= 3) {
    types = {types[2], types[0], types[1]};
  } else if (types = template_type_bytes(facts.kernel(), "UnaryFunctor"); types.size() >= 3) {
    // One argument is held by value.
    types = facts.named("AUnaryFunctor") ? std::vector{types[2], types[1]}
                                         : std::vector{types[2], types[0]};
  } else if (types = template_type_bytes(facts.kernel(), "masked_scale_kernel");
             types.size() >= 2) {  // Dropout.cu: <mask, scalar, ...>
    types = {types[1], types[1], types[0]};
  } else if (types = lambda_type_bytes(facts.kernel()); !types.empty()) {
    // The result has the first argument's type, as a rule.
    const std::uint64_t copied = copied_to_bytes(facts);
    types.insert(types.begin(), copied != 0 ? copied : types[0]);
  } else {
    types = {facts.element_bytes()};
  }
  types.resize(operands, types.back());
  return types;
}

// Kernels of several outputs, which come first:
// unrolled_elementwise_kernel_for_multi_outputs<outputs, ...>.
std::size_t outputs_of(const Facts& facts) {
  constexpr std::string_view kName = "elementwise_kernel_for_multi_outputsILi";
  const std::size_t at = facts.kernel().find(kName);
  const char digit = at == std::string_view::npos || at + kName.size() >= facts.kernel().size()
                         ? '1'
                         : facts.kernel()[at + kName.size()];
  return digit >= '1' && digit <= '9' ? static_cast<std::size_t>(digit - '0') : 1;
}

// data: consecutive pointers. touch_one(operand, pointer, read, write).
template <typename One>
void touch_operands(const Facts& facts, std::uint32_t data, std::size_t operands, One touch_one) {
  const std::size_t outputs = std::min(outputs_of(facts), operands);
  for (std::size_t i = outputs; i < operands; ++i)
    touch_one(i, facts.pointer_at(data + 8 * static_cast<std::uint32_t>(i)), true, false);
  // Inputs are swept first: an output that is one of them (in place) is then read and written.
  for (std::size_t o = 0; o < outputs; ++o) {
    bool in_place = false;
    const Pointer* const out = facts.pointer_at(data + 8 * static_cast<std::uint32_t>(o));
    for (std::size_t i = outputs; i < operands && out != nullptr; ++i) {
      const Pointer* const in = facts.pointer_at(data + 8 * static_cast<std::uint32_t>(i));
      in_place = in_place || (in != nullptr && in->address == out->address);
    }
    touch_one(o, out, in_place, true);
  }
}

// vectorized_, unrolled_, vectorized_templated_elementwise_kernel(int N, func, std::array<char*,
// n>, ...), elementwise_kernel_with_index.
bool describe_flat(const Facts& facts, Touch& touch) {
  const std::size_t operands = facts.size(2) / 8;
  if (operands == 0 || operands > 16) return false;
  const std::uint64_t n = facts.value<std::uint32_t>(0);
  std::vector<std::uint64_t> bytes = operand_bytes(facts, operands);
  // {ScalarType dtypes[inputs]; uint32_t sizes[inputs]}, StoreWithCast<1> behind it.
  if (facts.named("LoadWithCast")) {
    const auto inputs = static_cast<std::uint32_t>(operands - 1), start = (inputs + 3) / 4 * 4;
    for (std::uint32_t i = 0; i < inputs; ++i) {
      if (const auto size = facts.value<std::uint32_t>(5, start + 4 * i); size >= 1 && size <= 16)
        bytes[i + 1] = size;
    }
    if (const auto size = facts.value<std::uint32_t>(6, 4); size >= 1 && size <= 16)
      bytes[0] = size;
  }
  const auto outputs = static_cast<std::uint32_t>(std::min(outputs_of(facts), operands));
  const std::uint32_t inputs =
      operands > outputs ? static_cast<std::uint32_t>(operands) - outputs : 1;
  const bool strided = facts.size(3) == OffsetCalculator::bytes(inputs);
  const OffsetCalculator in(
      facts, facts.parameters() > 3 ? facts.launch().layout.parameters[3].offset : 0, inputs);
  const bool use_strides = strided && in.valid();
  touch_operands(facts, facts.launch().layout.parameters[2].offset, operands,
                 [&](std::size_t i, const Pointer* p, bool read, bool write) {
                   if (i < outputs || !use_strides)
                     return touch.add(p, 0, n * bytes[i], read, write);
                   touch.add_strided(
                       p, in.dimensions(static_cast<std::uint32_t>(i) - outputs, bytes[i]),
                       bytes[i], read, write);
                 });
  return true;
}

// elementwise_kernel<threads, items, lambda>(int N, lambda), the lambda of gpu_kernel_impl_nocast:
// an OffsetCalculator with strides in bytes, then the pointers, then the functor.
bool describe_strided(const Facts& facts, Touch& touch) {
  if (facts.parameters() != 2) return false;
  const std::uint32_t start = facts.launch().layout.parameters[1].offset;
  for (std::uint32_t operands = 8; operands >= 1; --operands) {
    const std::uint32_t data = start + (OffsetCalculator::bytes(operands) + 7) / 8 * 8;
    if (data + 8 * operands > start + facts.size(1)) continue;
    bool all = true;
    for (std::uint32_t i = 0; i < operands; ++i)
      all = all && facts.pointer_at(data + 8 * i) != nullptr;
    const OffsetCalculator calculator(facts, start, operands);
    if (!all || !calculator.valid() || calculator.elements() != facts.value<std::uint32_t>(0))
      continue;
    const std::vector<std::uint64_t> bytes = operand_bytes(facts, operands);
    touch_operands(facts, data, operands,
                   [&](std::size_t i, const Pointer* p, bool read, bool write) {
                     touch.add_strided(p, calculator.dimensions(static_cast<std::uint32_t>(i)),
                                       bytes[i], read, write);
                   });
    return true;
  }
  // With casts the lambda holds other things first. N elements behind each pointer, in the order
  // output, inputs.
  const std::uint64_t n = facts.value<std::uint32_t>(0);
  const std::vector<Pointer> pointers = facts.pointers_in(1);
  const std::vector<std::uint64_t> bytes = operand_bytes(facts, pointers.size() + 1);
  for (std::size_t i = 0; i < pointers.size(); ++i) touch.both(&pointers[i], n * bytes[i]);
  return true;
}

}  // namespace

bool describe_elementwise(const Facts& facts, Touch& touch) {
  if (facts.named("_scatter_gather_") || facts.named("index_elementwise_kernel")) return false;
  if (facts.named("vectorized_elementwise_kernel") || facts.named("unrolled_elementwise_kernel") ||
      facts.named("vectorized_templated_elementwise_kernel") ||
      facts.named("elementwise_kernel_with_index"))
    return describe_flat(facts, touch);
  if (facts.named("18elementwise_kernelI")) return describe_strided(facts, touch);
  return false;
}

}  // namespace deepum::simgpu
