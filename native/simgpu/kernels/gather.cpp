// Kernels whose addresses depend on index values, which the simulation does not have: rows are
// sampled. Sources: IndexKernel.cu, Embedding.cu, EmbeddingBag.cu, EmbeddingBackwardKernel.cu,
// Indexing.cu, ScatterGatherKernel.cu.
#include <algorithm>

#include "extents.hpp"
#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

std::uint64_t element_of(const Facts& facts) {
  if (const std::size_t at = facts.kernel().find("OpaqueTypeIL");
      at != std::string_view::npos && at + 14 < facts.kernel().size()) {
    std::uint64_t bytes = 0;
    for (std::size_t i = at + 13;
         i < facts.kernel().size() && facts.kernel()[i] >= '0' && facts.kernel()[i] <= '9'; ++i)
      bytes = 10 * bytes + static_cast<std::uint64_t>(facts.kernel()[i] - '0');
    if (bytes >= 1 && bytes <= 16) return bytes;
  }
  const std::vector<std::uint64_t> types = template_type_bytes(facts.kernel());
  return types.empty() ? 4 : types[0];
}

// A table whose number of rows the launch does not tell: as large as it was last seen, else one row
// for each index.
std::uint64_t table_bytes(const Pointer* table, std::uint64_t at_least) {
  if (table == nullptr) return 0;
  const std::uint64_t known = Extents::of_process().bytes_at(table->address);
  return known != 0 ? known : at_least;
}

// index_elementwise_kernel(int64 N, lambda): OffsetCalculator<3> of output, input, index; at 608
// output, input, number of indices, index pointers [25]; at 832 sizes [25] and at 1032 strides [25]
// in bytes of the indexed dimensions.
bool describe_index(const Facts& f, Touch& t) {
  if (!f.named("index_elementwise_kernel") || f.size(1) < 1232) return false;
  const std::uint32_t start = f.launch().layout.parameters[1].offset;
  const OffsetCalculator calculator(f, start, 3);
  const auto indices = f.value<std::uint64_t>(1, 624);
  if (!calculator.valid() || indices == 0 || indices > 25) return false;
  const std::uint64_t e = element_of(f), n = calculator.elements();
  const bool put = f.named("index_put") || f.named("index_fill") || f.named("index_copy");
  const std::uint32_t table = put ? 0 : 1;
  std::uint64_t row = e, rows = 1, table_span = calculator.span(table) + e;
  for (std::uint32_t d = 0; d < calculator.dims(); ++d) {
    if (calculator.stride(d, 2) == 0) {
      row += (calculator.size(d) - 1) * calculator.stride(d, table);
    } else {
      rows *= calculator.size(d);
    }
  }
  for (std::uint32_t i = 0; i < indices; ++i) {
    table_span += (std::max<std::uint64_t>(f.value<std::uint64_t>(1, 832 + 8 * i), 1) - 1) *
                  f.value<std::uint64_t>(1, 1032 + 8 * i);
    t.read(f.pointer_at(start + 632 + 8 * i), calculator.span(2) + 8);
  }
  const std::uint64_t bytes = std::min(row, table_span);
  touch_sampled_rows(f, t, f.pointer_at(start + (put ? 608 : 616)), table_span, bytes,
                     std::max<std::uint64_t>(1, std::min(rows, n)), true, put);
  t.add(f.pointer_at(start + (put ? 616 : 608)), 0, calculator.span(1 - table) + e, put, !put);
  return true;
}

bool describe_embedding_forward(const Facts& f, Touch& t) {
  // out, table, indices, count, slice bytes, rows, row stride, out stride.
  if (f.named("vectorized_gather_kernel")) {
    const std::uint64_t count = f.value<std::uint32_t>(3), slice = f.value<std::uint64_t>(4),
                        rows = f.value<std::uint64_t>(5);
    t.read(f.pointer(2), count * 8);
    touch_sampled_rows(f, t, f.pointer(1), rows * f.value<std::uint64_t>(6),
                       std::max(slice, f.value<std::uint64_t>(6)), count, true, false);
    t.write(f.pointer(0), count * std::max(slice, f.value<std::uint64_t>(7)));
    return true;
  }
  // indices, offsets, table, out, bags, number, bags, width, strides, mode, sizes, ...
  if (f.named("EmbeddingBag_updateOutputKernel")) {
    const std::uint64_t e = element_of(f), indices = f.value<std::uint64_t>(5),
                        bags = f.value<std::uint64_t>(6), width = f.value<std::uint64_t>(7),
                        stride = f.value<std::uint64_t>(8);
    const std::uint64_t rows = f.parameters() > 15 ? f.value<std::uint64_t>(15) : 0;
    const std::uint64_t row = std::max(width, stride) * e;
    t.read(f.pointer(0), indices * 8);
    t.read(f.pointer(1), bags * 8);
    touch_sampled_rows(f, t, f.pointer(2),
                       rows != 0 ? rows * row : table_bytes(f.pointer(2), indices * row), row,
                       indices, true, false);
    t.write(f.pointer(3), bags * width * e);
    t.write(f.pointer(4), indices * 8);
    return true;
  }
  return false;
}

// indexSelectSmallIndex, indexSelectLargeIndex: TensorInfo of output, table, indices {pointer, 25
// sizes, 25 strides, number of dimensions}; the dimension that is selected, of output and table;
// (large) elements in all; elements for each index; rows of the table. PyTorch 2.4 and 2.6 look
// embeddings up by it.
bool describe_index_select(const Facts& f, Touch& t) {
  const bool large = f.named("indexSelectLargeIndex");
  if (!large && !f.named("indexSelectSmallIndex")) return false;
  const std::uint32_t width = f.size(0) == 416 ? 8 : 4;  // of sizes and strides
  const auto number = [&](std::size_t parameter, std::uint32_t offset) -> std::uint64_t {
    return width == 8 ? f.value<std::uint64_t>(parameter, offset)
                      : f.value<std::uint32_t>(parameter, offset);
  };
  const std::uint32_t selected = f.value<std::uint32_t>(4),
                      dims = f.value<std::uint32_t>(2, 8 + 50 * width);
  if (f.size(0) != (width == 8 ? 416 : 216) || selected >= 25 || dims > 25) return false;
  std::uint64_t count = 1;
  for (std::uint32_t d = 0; d < dims; ++d) count *= number(2, 8 + d * width);
  const std::uint64_t e = element_of(f), inner = number(large ? 6 : 5, 0),
                      rows = f.value<std::uint64_t>(large ? 7 : 6);
  const std::uint64_t stride = number(1, 8 + (25 + selected) * width);
  t.read(f.pointer(2), count * 8);
  if (stride >= inner) {
    touch_sampled_rows(f, t, f.pointer(1), rows * stride * e, inner * e, count, true, false);
  } else {  // a row's elements lie all over the table
    t.read(f.pointer(1), rows * inner * e);
  }
  t.write(f.pointer(0), count * inner * e);
  return true;
}

bool describe_embedding_backward(const Facts& f, Touch& t) {
  const std::uint64_t e = element_of(f);
  // indices, grad, grad weight, n (int), width, padding.
  if (f.named("embedding_backward_feature_kernel")) {
    const std::uint64_t n = f.value<std::uint32_t>(3), row = f.value<std::uint64_t>(4) * e;
    t.read(f.pointer(0), n * 8);
    t.read(f.pointer(1), n * row);
    touch_sampled_rows(f, t, f.pointer(2), table_bytes(f.pointer(2), n * row), row, n, true, true);
    return true;
  }
  // indices, grad, ..., numel, width, ..., partial sums last but one.
  if (f.named("compute_grad_weight")) {
    const bool bags = f.named("compute_grad_weight_bags");
    const auto n = f.value<std::uint64_t>(bags ? 4 : 3),
               width = f.value<std::uint64_t>(bags ? 5 : 4);
    const std::uint64_t blocks = f.blocks() * f.block_threads() / std::max<std::uint64_t>(width, 1);
    t.read(f.pointer(0), n * 8);
    t.read(f.pointer(1), n * width * e);
    if (bags) t.read(f.pointer(2), n * 8);
    t.read(f.pointer(bags ? 10 : 5), n * 8);
    t.write(f.pointer(f.parameters() - 2), std::min(blocks, n) * width * 4);
    return true;
  }
  // indices, grad weight, width, segment offsets, number, partial sums, ...; a block for each
  // segment.
  if (f.named("sum_and_scatter")) {
    const std::uint64_t segments = f.launch().grid[0], width = f.value<std::uint64_t>(2),
                        row = width * e;
    t.read(f.pointer(0), segments * 8);
    t.read(f.pointer(3), segments * 8);
    t.read(f.pointer(5), segments * width * 4);
    touch_sampled_rows(f, t, f.pointer(1), table_bytes(f.pointer(1), segments * row), row, segments,
                       false, true);
    return true;
  }
  // sorted, order, grad, grad weight, n, width, width before, outer, accumulate.
  if (f.named("indexing_backward_kernel")) {
    const auto n = f.value<std::uint64_t>(4), width = f.value<std::uint64_t>(5),
               before = f.value<std::uint64_t>(6),
               outer = std::max<std::uint64_t>(f.value<std::uint64_t>(7), 1);
    t.read(f.pointer(0), n * 8);
    t.read(f.pointer(1), n * 8);
    t.read(f.pointer(2), n * width * outer * e);
    const std::uint64_t whole = table_bytes(f.pointer(3), outer * std::max(before, n * width) * e);
    if (outer > 1) {
      t.both(f.pointer(3), whole);
    } else {
      touch_sampled_rows(f, t, f.pointer(3), whole, width * e, n, true, true);
    }
    return true;
  }
  return false;
}

// _scatter_gather_elementwise_kernel(int N, lambda): OffsetCalculator<3> of self, source, index;
// their pointers behind it.
bool describe_scatter_gather(const Facts& f, Touch& t) {
  if (!f.named("_scatter_gather_elementwise_kernel")) return false;
  const std::uint64_t n = f.value<std::uint32_t>(0), e = element_of(f);
  for (const Pointer& pointer : f.pointers_in(1)) {
    if (pointer.offset >= f.launch().layout.parameters[1].offset + OffsetCalculator::bytes(3))
      t.both(&pointer, n * std::max<std::uint64_t>(e, 8));
  }
  return true;
}

// cub's sorts and scans: passes over n items of 8 bytes (PyTorch sorts indices, as int64, with
// their positions).
bool describe_sort(const Facts& f, Touch& t) {
  struct Form {
    std::string_view name;
    std::size_t count;  // the parameter with the number of items
  };
  static constexpr Form kForms[] = {{"DeviceRadixSortOnesweepKernel", 8},
                                    {"DeviceRadixSortHistogramKernel", 2},
                                    {"DeviceRadixSortSingleTileKernel", 4},
                                    {"DeviceUniqueByKeySweepKernel", 7},
                                    {"DeviceScanKernel", 6}};
  for (const Form& form : kForms) {
    if (!f.named(form.name)) continue;
    const std::uint64_t n = f.size(form.count) == 8 ? f.value<std::uint64_t>(form.count)
                                                    : f.value<std::uint32_t>(form.count);
    if (n == 0 || n > 1ull << 36) return false;
    for (std::size_t i = 0; i < form.count; ++i) {
      const bool counters = form.count == 8 ? i < 4 : form.count == 2 && i == 0;
      if (f.size(i) == 8)
        t.both(f.pointer(i), counters ? std::max<std::uint64_t>(f.blocks(), 8) * 256 * 4 : n * 8);
    }
    return true;
  }
  return false;
}

}  // namespace

bool describe_gather(const Facts& facts, Touch& touch) {
  return describe_index(facts, touch) || describe_embedding_forward(facts, touch) ||
         describe_index_select(facts, touch) || describe_embedding_backward(facts, touch) ||
         describe_scatter_gather(facts, touch) || describe_sort(facts, touch);
}

}  // namespace deepum::simgpu
