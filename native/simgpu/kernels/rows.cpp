// Kernels that go over rows: softmax, layer norm, losses, dropout, concatenation. Parameters as in
// the sources named with each.
#include <algorithm>
#include <cstdlib>

#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

std::uint64_t element_of(const Facts& facts) {
  const std::vector<std::uint64_t> types = template_type_bytes(facts.kernel());
  return types.empty() ? 4 : types[0];
}

// layer_norm_kernel.cu
bool describe_layer_norm(const Facts& f, Touch& t) {
  const std::uint64_t e = element_of(f), grid = f.launch().grid[0];
  if (f.named("vectorized_layer_norm_kernel")) {  // N, eps, X, gamma, beta, mean, rstd, Y
    const std::uint64_t n = f.value<std::uint32_t>(0);
    t.read(f.pointer(2), grid * n * e);
    t.read(f.pointer(3), n * e);
    t.read(f.pointer(4), n * e);
    t.write(f.pointer(5), grid * 4);
    t.write(f.pointer(6), grid * 4);
    t.write(f.pointer(7), grid * n * e);
    t.flops(8.0 * static_cast<double>(grid * n));
    return true;
  }
  if (f.named("layer_norm_grad_input_kernel")) {  // dY, X, mean, rstd, gamma, dX, N
    const std::uint64_t n = f.value<std::uint32_t>(6);
    t.read(f.pointer(0), grid * n * e);
    t.read(f.pointer(1), grid * n * e);
    t.read(f.pointer(2), grid * 4);
    t.read(f.pointer(3), grid * 4);
    t.read(f.pointer(4), n * e);
    t.write(f.pointer(5), grid * n * e);
    t.flops(12.0 * static_cast<double>(grid * n));
    return true;
  }
  // M, N, dY, X, mean, rstd, dgamma, dbeta.
  if (f.named("GammaBetaBackward") && f.pointer(2) != nullptr) {
    const auto m = f.value<std::uint64_t>(0), n = f.value<std::uint64_t>(1);
    t.read(f.pointer(2), m * n * e);
    t.read(f.pointer(3), m * n * e);
    t.read(f.pointer(4), m * 4);
    t.read(f.pointer(5), m * 4);
    t.write(f.pointer(6), std::max<std::uint64_t>(f.launch().grid[1], 1) * n * e);
    t.write(f.pointer(7), std::max<std::uint64_t>(f.launch().grid[1], 1) * n * e);
    return true;
  }
  if (f.named("RowwiseMomentsCUDAKernel")) {  // N, eps, X, mean, rstd
    t.read(f.pointer(2), grid * f.value<std::uint64_t>(0) * e);
    t.write(f.pointer(3), grid * 4);
    t.write(f.pointer(4), grid * 4);
    return true;
  }
  if (f.named("LayerNormForwardCUDAKernel")) {  // N, X, mean, rstd, gamma, beta, Y
    const auto n = f.value<std::uint64_t>(0);
    t.read(f.pointer(1), grid * n * e);
    for (const std::size_t i : {2, 3}) t.read(f.pointer(i), grid * 4);
    for (const std::size_t i : {4, 5}) t.read(f.pointer(i), n * e);
    t.write(f.pointer(6), grid * n * e);
    return true;
  }
  return false;
}

// SoftMax.cu, PersistentSoftmax.cuh
bool describe_softmax(const Facts& f, Touch& t) {
  const std::uint64_t e = element_of(f), grid = f.launch().grid[0];
  if (f.named("softmax_warp_forward")) {  // dst, src, batch, stride, elements, mask
    const std::uint64_t bytes =
        std::uint64_t{f.value<std::uint32_t>(2)} * f.value<std::uint32_t>(3) * e;
    t.read(f.pointer(1), bytes);
    t.write(f.pointer(0), bytes);
    return true;
  }
  // grad input, grad, output, batch, stride, elements, mask.
  if (f.named("softmax_warp_backward")) {
    const std::uint64_t bytes =
        std::uint64_t{f.value<std::uint32_t>(3)} * f.value<std::uint32_t>(4) * e;
    t.read(f.pointer(1), bytes);
    t.read(f.pointer(2), bytes);
    t.write(f.pointer(0), bytes);
    return true;
  }
  if (f.named("cunn_SoftMaxForward")) {  // output, input, classes; a block for each row
    const std::uint64_t bytes = grid * f.value<std::uint32_t>(2) * e;
    t.read(f.pointer(1), bytes);
    t.write(f.pointer(0), bytes);
    return true;
  }
  if (f.named("cunn_SoftMaxBackward")) {  // grad input, output, grad output, classes
    const std::uint64_t bytes = grid * f.value<std::uint32_t>(3) * e;
    t.read(f.pointer(1), bytes);
    t.read(f.pointer(2), bytes);
    t.write(f.pointer(0), bytes);
    return true;
  }
  return false;
}

// One element of each row, at a column that the row's number decides: every block of the matrix is
// met, few of its bytes.
void touch_one_of_each_row(Touch& t, const Pointer* p, std::uint64_t rows, std::uint64_t columns,
                           std::uint64_t e, bool read, bool write) {
  constexpr std::uint64_t kMost = 4096;
  const std::uint64_t step = std::max<std::uint64_t>(1, (rows + kMost - 1) / kMost);
  for (std::uint64_t row = 0; row < rows && columns != 0; row += step)
    t.add(p, (row * columns + row * 0x9e3779b97f4a7c15ull % columns) * e, e * step, read, write);
}

// Loss.cu, NLLLoss.cu
bool describe_loss(const Facts& f, Touch& t) {
  const std::uint64_t e = element_of(f);
  // out, total weight, input, target, weights, average, frames, rows, classes.
  if (f.named("nll_loss_forward_reduce_cuda_kernel_2d")) {
    const auto frames = f.value<std::uint64_t>(6), classes = f.value<std::uint64_t>(8);
    t.read(f.pointer(3), frames * 8);
    touch_one_of_each_row(t, f.pointer(2), frames, classes, e, true, false);
    t.read(f.pointer(4), classes * e);
    t.write(f.pointer(0), e);
    t.write(f.pointer(1), e);
    return true;
  }
  // grad input, grad, target, weights, total, average, frames (int), classes (int)
  if (f.named("nll_loss_backward_reduce_cuda_kernel_2d")) {
    const std::uint64_t frames = f.value<std::uint32_t>(6), classes = f.value<std::uint32_t>(7);
    t.read(f.pointer(1), e);
    t.read(f.pointer(2), frames * 8);
    if (f.value<std::uint64_t>(3) != 0) t.read(f.pointer(3), classes * e);
    t.read(f.pointer(4), e);
    touch_one_of_each_row(t, f.pointer(0), frames, classes, e, false, true);
    return true;
  }
  return false;
}

// Dropout.cu: TensorInfo a, b, mask; the number of elements
bool describe_dropout(const Facts& f, Touch& t) {
  if (!f.named("fused_dropout_kernel")) return false;
  const std::uint64_t e = element_of(f);
  const std::uint64_t n = f.size(3) == 8 ? f.value<std::uint64_t>(3) : f.value<std::uint32_t>(3);
  const auto elements = [&](std::size_t i) { return std::max(n, tensor_info_elements(f, i)); };
  t.read(f.pointer_at(f.launch().layout.parameters[0].offset), elements(0) * e);
  t.write(f.pointer_at(f.launch().layout.parameters[1].offset), elements(1) * e);
  t.write(f.pointer_at(f.launch().layout.parameters[2].offset), elements(2));
  return true;
}

// Shape.cu: output, CatArrInputTensorMetadata {T* input[n]; uint32_t offset[n], dimension[n],
// elements[n]; bool contiguous[n]; {uint32_t sizes[4], strides[4]} shapes[n or 1]}, the output's
// shape, the dimension. grid.y: inputs.
bool describe_cat(const Facts& f, Touch& t) {
  if (!f.named("CatArrayBatchedCopy") || f.parameters() < 3) return false;
  std::uint64_t e = 4;
  if (const std::size_t at = f.kernel().find("OpaqueTypeILj"); at != std::string_view::npos) {
    // "16" or "4E"
    e = std::strtoul(std::string(f.kernel().substr(at + 13, 2)).c_str(), nullptr, 10);
  }
  const std::uint32_t n = f.size(1) == 3392 ? 64 : f.size(1) == 2720 ? 128 : 0;
  if (n == 0 || f.launch().grid[1] > n) return false;
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < f.launch().grid[1]; ++i) {
    const std::uint64_t elements = f.value<std::uint32_t>(1, 8 * n + 4 * (2 * n + i));
    const bool contiguous = n == 128 || f.value<std::uint8_t>(1, 20 * n + i) != 0;
    std::uint64_t span = elements;
    if (!contiguous) {
      span = 1;
      for (std::uint32_t d = 0; d < 4; ++d) {
        const std::uint64_t size = f.value<std::uint32_t>(1, 21 * n + 32 * i + 4 * d);
        if (size > 1) span += (size - 1) * f.value<std::uint32_t>(1, 21 * n + 32 * i + 16 + 4 * d);
      }
    }
    t.read(f.pointer_at(f.launch().layout.parameters[1].offset + 8 * i),
           std::max(span, elements) * e);
    total += elements;
  }
  t.write(f.pointer(0), total * e);
  return true;
}

// ScanUtils.cuh: output, input, rows, elements of a row; (along another dimension) output, input,
// rows, columns, elements of a scan
bool describe_scan(const Facts& f, Touch& t) {
  const bool inner = f.named("tensor_kernel_scan_innermost_dim");
  if (!inner && !f.named("tensor_kernel_scan_outer_dim")) return false;
  const std::uint64_t elements = f.integer(2) * f.integer(3) * (inner ? 1 : f.integer(4));
  t.read(f.pointer(1), elements * element_of(f));
  t.write(f.pointer(0), elements * element_of(f));
  t.flops(static_cast<double>(elements));
  return true;
}

// TensorTransformations.cu: input, output, elements, ...
bool describe_roll(const Facts& f, Touch& t) {
  if (!f.named("16roll_cuda_kernelI") || f.parameters() != 8) return false;
  const std::uint64_t bytes = f.integer(2) * element_of(f);
  t.read(f.pointer(0), bytes);
  t.write(f.pointer(1), bytes);
  return true;
}

}  // namespace

bool describe_rows(const Facts& facts, Touch& touch) {
  return describe_layer_norm(facts, touch) || describe_softmax(facts, touch) ||
         describe_loss(facts, touch) || describe_dropout(facts, touch) ||
         describe_cat(facts, touch) || describe_scan(facts, touch) || describe_roll(facts, touch);
}

}  // namespace deepum::simgpu
