// Batch norm (Normalization.cuh) and group norm (group_norm_kernel.cu). Statistics and parameters
// of channels are of 4 bytes: what they are of in half precision makes no difference to pages.
#include <initializer_list>

#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::uint64_t kStatistic = 4;  // bytes

// The parameters of one kernel, by position: tensors that are read and written, and statistics of
// each channel.
struct Form {
  std::string_view name;
  std::initializer_list<std::size_t> read, written, statistics_read, statistics_written;
  double flops;  // for each element
};

std::uint64_t element_of(const Facts& f, std::string_view kernel) {
  std::vector<std::uint64_t> types = template_type_bytes(f.kernel(), kernel);
  // batch_norm_collect_statistics_kernel<Var or InvStd, ...>: a class comes first.
  if (types.empty()) types = type_bytes_after(f.kernel(), "3VarE");
  if (types.empty()) types = type_bytes_after(f.kernel(), "6InvStdE");
  return types.empty() ? f.element_bytes() : types[0];
}

// Tensors are PackedTensorAccessors of samples, channels and pixels; statistics such of one
// dimension.
bool describe_batch_norm(const Facts& f, Touch& t) {
  static const Form kForms[] = {
      {"batch_norm_collect_statistics_kernel", {0}, {}, {}, {3, 4}, 5},
      {"batch_norm_transform_input_kernel", {0}, {1}, {2, 3, 4, 5}, {}, 4},
      {"batch_norm_backward_kernel", {0, 1}, {2}, {5, 6, 7, 8, 9}, {3, 4}, 10},
      {"batch_norm_backward_reduce_kernel", {0, 1}, {}, {2, 3}, {4, 5, 6, 7}, 5},
      {"batch_norm_backward_elemt_kernel", {0, 1}, {7}, {2, 3, 4, 5, 6}, {}, 6},
  };
  for (const Form& form : kForms) {
    if (!f.named(form.name)) continue;
    const PackedAccessor first(f, 0, 3);
    if (!first.valid()) return false;
    const std::uint64_t e = element_of(f, form.name);
    const auto touch = [&](std::initializer_list<std::size_t> parameters, std::uint32_t dims,
                           std::uint64_t element, bool write) {
      for (const std::size_t parameter : parameters) {
        const PackedAccessor accessor(f, parameter, dims);
        if (accessor.valid())
          t.add_strided(accessor.data(), accessor.dimensions(element), element, !write, write);
      }
    };
    touch(form.read, 3, e, false);
    touch(form.statistics_read, 1, kStatistic, false);
    touch(form.written, 3, e, true);
    touch(form.statistics_written, 1, kStatistic, true);
    t.flops(form.flops * static_cast<double>(first.elements()));
    return true;
  }
  return false;
}

// Tensors are of rows of channels: pointers, then the number of rows and that of channels, which
// end the parameters or stand before a flag and two factors. What lies between blocks (partial
// sums, semaphores) is of four rows at most for each of them.
bool describe_channels_last(const Facts& f, Touch& t) {
  struct Last {
    Form form;
    std::size_t rows, first_scratch, end_scratch;  // parameters
  };
  static const Last kForms[] = {
      {{"batch_norm_collect_statistics_channels_last_kernel", {0}, {}, {}, {1, 2}, 5}, 5, 3, 5},
      {{"batch_norm_transform_input_channels_last_kernel", {0, 1}, {6}, {2, 3, 4, 5}, {}, 4},
       7,
       0,
       0},
      {{"batch_norm_backward_reduce_channels_last_kernel", {0, 1}, {}, {2, 3}, {4, 5, 6, 7}, 5},
       10,
       8,
       10},
      {{"batch_norm_backward_elemt_channels_last_kernel", {0, 1}, {7}, {2, 3, 4, 5, 6}, {}, 6},
       0,
       0,
       0},
  };
  for (const Last& last : kForms) {
    const Form& form = last.form;
    if (!f.named(form.name)) continue;
    // backward_elemt: behind a factor, or behind the counts of several processes.
    std::size_t rows_at = last.rows;
    if (rows_at == 0) rows_at = f.parameters() - 2;
    const std::uint64_t e = element_of(f, f.named("_impl") ? "_impl" : form.name);
    const std::uint64_t channels = f.integer(rows_at + 1), tensor = f.integer(rows_at) * channels;
    for (const std::size_t i : form.read) t.read(f.pointer(i), tensor * e);
    for (const std::size_t i : form.statistics_read) t.read(f.pointer(i), channels * kStatistic);
    for (std::size_t i = last.first_scratch; i < last.end_scratch; ++i)
      t.both(f.pointer(i), f.launch().grid[1] * channels * 4 * kStatistic);
    for (const std::size_t i : form.written) t.write(f.pointer(i), tensor * e);
    for (const std::size_t i : form.statistics_written)
      t.write(f.pointer(i), channels * kStatistic);
    t.flops(form.flops * static_cast<double>(tensor));
    return true;
  }
  return false;
}

// The kernels around a group norm's pointwise one. Sizes are of samples times groups, or times
// channels.
bool describe_group_norm(const Facts& f, Touch& t) {
  // N, C, groups, mean, rstd, gamma, beta, a, b.
  if (f.named("ComputeFusedParamsCUDAKernel") && f.parameters() == 9) {
    const std::uint64_t n = f.integer(0), channels = f.integer(1), groups = f.integer(2);
    for (const std::size_t i : {3, 4}) t.read(f.pointer(i), n * groups * kStatistic);
    for (const std::size_t i : {5, 6}) t.read(f.pointer(i), channels * kStatistic);
    for (const std::size_t i : {7, 8}) t.write(f.pointer(i), n * channels * kStatistic);
    return true;
  }
  // pixels, dY, X, ds, db; a block for each plane.
  if (f.named("ComputeInternalGradientsCUDAKernel") && f.parameters() == 5) {
    const std::uint64_t planes = f.launch().grid[0], tensor = planes * f.integer(0);
    const std::uint64_t e = element_of(f, "ComputeInternalGradientsCUDAKernel");
    for (const std::size_t i : {1, 2}) t.read(f.pointer(i), tensor * e);
    for (const std::size_t i : {3, 4}) t.write(f.pointer(i), planes * kStatistic);
    t.flops(3.0 * static_cast<double>(tensor));
    return true;
  }
  // channels, pixels, groups, mean, rstd, gamma, ds, db, c2, c3; a row of blocks for each sample
  if (f.named("ComputeBackwardFusedParamsCUDAKernel") && f.parameters() == 10) {
    const std::uint64_t n = f.launch().grid[0], channels = f.integer(0), groups = f.integer(2);
    for (const std::size_t i : {3, 4}) t.read(f.pointer(i), n * groups * kStatistic);
    t.read(f.pointer(5), channels * kStatistic);
    for (const std::size_t i : {6, 7}) t.read(f.pointer(i), n * channels * kStatistic);
    for (const std::size_t i : {8, 9}) t.write(f.pointer(i), n * groups * kStatistic);
    return true;
  }
  // N, C, groups, mean, rstd, ds, db, dgamma, dbeta.
  if (f.named("GammaBetaBackwardCUDAKernel") && f.parameters() == 9) {
    const std::uint64_t n = f.integer(0), channels = f.integer(1), groups = f.integer(2);
    for (const std::size_t i : {3, 4}) t.read(f.pointer(i), n * groups * kStatistic);
    for (const std::size_t i : {5, 6}) t.read(f.pointer(i), n * channels * kStatistic);
    for (const std::size_t i : {7, 8}) t.write(f.pointer(i), channels * kStatistic);
    return true;
  }
  return false;
}

}  // namespace

bool describe_normalisation(const Facts& facts, Touch& touch) {
  return describe_channels_last(facts, touch) || describe_batch_norm(facts, touch) ||
         describe_group_norm(facts, touch);
}

}  // namespace deepum::simgpu
