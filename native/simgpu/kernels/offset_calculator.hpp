// ATen's structs that describe strided tensors inside parameter buffers, in their 32-bit index
// forms.
#pragma once

#include "launch_facts.hpp"

namespace deepum::simgpu {

// OffsetCalculator<operands, uint32_t>: int dims; IntDivider sizes[25] {divisor, m1, shift};
// uint32_t strides[25][operands].
class OffsetCalculator {
 public:
  static constexpr std::uint32_t kDimensions = 25;
  static std::uint32_t bytes(std::uint32_t operands) {
    return 4 + 12 * kDimensions + 4 * kDimensions * operands;
  }

  OffsetCalculator(const Facts& facts, std::uint32_t offset, std::uint32_t operands)
      : facts_(facts),
        offset_(offset),
        operands_(operands),
        dims_(facts.at<std::uint32_t>(offset)) {}

  // False: what lies there is not one.
  bool valid() const {
    if (dims_ > kDimensions || offset_ + bytes(operands_) > facts_.launch().layout.bytes)
      return false;
    for (std::uint32_t i = 0; i < dims_; ++i) {
      const std::uint64_t shift = facts_.at<std::uint32_t>(offset_ + 4 + 12 * i + 8);
      // IntDivider's own rule for the shift.
      if (size(i) == 0 || shift > 32 || (1ull << shift) < size(i)) return false;
    }
    return true;
  }
  std::uint32_t dims() const { return dims_; }
  std::uint64_t size(std::uint32_t dim) const {
    return facts_.at<std::uint32_t>(offset_ + 4 + 12 * dim);
  }
  std::uint64_t stride(std::uint32_t dim, std::uint32_t operand) const {
    return facts_.at<std::uint32_t>(offset_ + 4 + 12 * kDimensions +
                                    4 * (dim * operands_ + operand));
  }
  std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (std::uint32_t i = 0; i < dims_; ++i) product *= size(i);
    return product;
  }
  // From the first element to the last one's begin, in the strides' unit.
  std::uint64_t span(std::uint32_t operand) const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < dims_; ++i) sum += (size(i) - 1) * stride(i, operand);
    return sum;
  }
  // Its dimensions; strides in bytes if they are kept in units of so many.
  std::vector<Dimension> dimensions(std::uint32_t operand, std::uint64_t unit = 1) const {
    std::vector<Dimension> all;
    all.reserve(dims_);
    for (std::uint32_t i = 0; i < dims_; ++i) all.push_back({size(i), stride(i, operand) * unit});
    return all;
  }

 private:
  const Facts& facts_;
  std::uint32_t offset_, operands_, dims_;
};

// TensorInfo<T, uint32_t>: T* data; uint32_t sizes[25], strides[25]; int dims. 216 bytes; with
// uint64_t 416.
inline std::uint64_t tensor_info_elements(const Facts& facts, std::size_t parameter) {
  const bool wide = facts.size(parameter) == 416;
  if (!wide && facts.size(parameter) != 216) return 0;
  const std::uint32_t word = wide ? 8 : 4;
  const auto read = [&](std::uint32_t offset) -> std::uint64_t {
    return wide ? facts.value<std::uint64_t>(parameter, offset)
                : facts.value<std::uint32_t>(parameter, offset);
  };
  const auto dims = facts.value<std::uint32_t>(parameter, 8 + 50 * word);
  if (dims > 25) return 0;
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < dims; ++i)
    last += (read(8 + i * word) - 1) * read(8 + (25 + i) * word);
  return last + 1;
}

// PackedTensorAccessor<T, N, int or int64_t>, a parameter of its own: T* data; index sizes[N],
// strides[N].
class PackedAccessor {
 public:
  PackedAccessor(const Facts& facts, std::size_t parameter, std::uint32_t dims)
      : facts_(facts), parameter_(parameter), dims_(dims) {
    wide_ = facts.size(parameter) == 8 + 16 * dims;
    valid_ = wide_ || facts.size(parameter) == 8 + 8 * dims;
  }
  bool valid() const { return valid_; }
  const Pointer* data() const {
    return facts_.pointer_at(facts_.launch().layout.parameters[parameter_].offset);
  }
  std::uint64_t size(std::uint32_t dim) const { return number(dim); }
  std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (std::uint32_t i = 0; i < dims_; ++i) product *= size(i);
    return product;
  }
  std::vector<Dimension> dimensions(std::uint64_t element) const {
    std::vector<Dimension> all;
    all.reserve(dims_);
    for (std::uint32_t i = 0; i < dims_; ++i) all.push_back({size(i), number(dims_ + i) * element});
    return all;
  }

 private:
  std::uint64_t number(std::uint32_t i) const {
    return wide_ ? facts_.value<std::uint64_t>(parameter_, 8 + 8 * i)
                 : facts_.value<std::uint32_t>(parameter_, 8 + 4 * i);
  }
  const Facts& facts_;
  std::size_t parameter_;
  std::uint32_t dims_;
  bool wide_ = false, valid_ = false;
};

}  // namespace deepum::simgpu
