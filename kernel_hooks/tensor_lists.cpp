#include "tensor_lists.hpp"

#include <algorithm>

namespace deepum::hooks {
namespace {

// aten/src/ATen/native/cuda/MultiTensorApply.cuh, by depth - 1. Tensor sizes have 64 bits in all of
// these; the 32 bits of before fit none, or one with the other fields in the same places (32 + 64
// bits of size and scalar are as many as 64 + 32).
struct Capacity {
  std::uint16_t tensors[5];       // TensorListMetadata, FusedOptimizerTensorListMetadata
  std::uint16_t with_scalars[5];  // TensorListScalarListMetadata
  std::uint16_t with_complex[5];  // the same of c10::complex<double>
  std::uint16_t blocks[5];
  std::uint16_t index_bytes;
};
constexpr Capacity kCapacities[] = {
    // For 4 KiB of parameters: PyTorch up to 2.11.
    {{110, 64, 48, 36, 30},
     {96, 64, 48, 36, 30},
     {72, 60, 48, 36, 30},
     {320, 320, 320, 320, 320},
     1},
    // For 32 KiB: PyTorch 2.12 to 2.15, built with CUDA 13; with the capability as template
    // argument in pull request 134373.
    {{770, 448, 336, 252, 210},
     {672, 448, 336, 252, 210},
     {504, 420, 336, 252, 210},
     {2240, 2240, 2240, 2240, 2240},
     2},
    // For 32 KiB, of 2026: at most 256 tensors, so that a byte names one; the capability is a
    // template argument.
    {{256, 256, 256, 256, 256},
     {256, 256, 256, 256, 256},
     {194, 182, 170, 158, 256},
     {5272, 4863, 4453, 4044, 3634},
     1},
};

enum class Kind : std::uint8_t { kPlain, kScalars, kFused };
struct Metadata {
  Kind kind;
  std::uint32_t depth;         // 1 to 5; 0: not known
  std::uint32_t scalar_bytes;  // of kScalars
};

bool take(std::string_view& text, std::string_view start) noexcept {
  if (!text.starts_with(start)) {
    return false;
  }
  text.remove_prefix(start.size());
  return true;
}

// 0: not a type that PyTorch computes scalars in.
std::uint32_t take_scalar(std::string_view& text) noexcept {
  if (take(text, "N3c107complexIdEE")) {
    return 16;
  }
  if (take(text, "N3c107complexIfEE")) {
    return 8;
  }
  constexpr std::string_view kTypes[] = {"abch", "st", "fij", "dlmxy"};
  for (std::uint32_t power = 0; power < 4 && !text.empty(); ++power) {
    if (kTypes[power].find(text.front()) != std::string_view::npos) {
      text.remove_prefix(1);
      return 1u << power;
    }
  }
  return 0;
}

// The first template argument: at::native::(anonymous)::NAME<[scalar,] depth[, capability]>, its
// namespace a substitution ("NS1_").
Metadata metadata_of(std::string_view function) noexcept {
  constexpr Metadata kUnknown{Kind::kPlain, 0, 0};
  constexpr std::string_view kKernel = "25multi_tensor_apply_kernelI";
  const std::size_t at = function.find(kKernel);
  if (at == std::string_view::npos) {
    return kUnknown;
  }
  std::string_view rest = function.substr(at + kKernel.size());
  const std::size_t separator = rest.find('_');
  if (!take(rest, "NS") || separator == std::string_view::npos) {
    return kUnknown;
  }
  rest.remove_prefix(separator - 1);
  Metadata found = kUnknown;
  if (take(rest, "28TensorListScalarListMetadataI")) {
    found.kind = Kind::kScalars;
    found.scalar_bytes = take_scalar(rest);
    if (found.scalar_bytes == 0) {
      return kUnknown;
    }
  } else if (take(rest, "32FusedOptimizerTensorListMetadataI")) {
    found.kind = Kind::kFused;
  } else if (!take(rest, "18TensorListMetadataI")) {
    return kUnknown;
  }
  if (!take(rest, "Li") || rest.empty() || rest.front() < '1' || rest.front() > '5') {
    return kUnknown;
  }
  const auto depth = static_cast<std::uint32_t>(rest.front() - '0');
  rest.remove_prefix(1);
  if (!take(rest, "E") || !(take(rest, "EE") || take(rest, "Lb0EEE") || take(rest, "Lb1EEE"))) {
    return kUnknown;
  }
  found.depth = depth;
  return found;
}

constexpr std::uint32_t up(std::uint32_t value, std::uint32_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

// Fields in the order of the header: addresses, sizes, scalars or step counters, tensors of blocks,
// chunks of blocks, first tensor.
constexpr TensorLists lay_out(const Capacity& capacity, const Metadata& metadata) noexcept {
  const std::uint32_t i = metadata.depth - 1;
  const bool scalars = metadata.kind == Kind::kScalars;
  TensorLists made;
  made.lists = metadata.depth;
  made.tensors = !scalars                      ? capacity.tensors[i]
                 : metadata.scalar_bytes == 16 ? capacity.with_complex[i]
                                               : capacity.with_scalars[i];
  const std::uint32_t sizes_end = 8 * made.tensors * (metadata.depth + 1);
  made.steps = metadata.kind == Kind::kFused ? sizes_end : 0;
  made.block_to_tensor = sizes_end + made.tensors * (made.steps ? 8 : metadata.scalar_bytes);
  made.index_bytes = capacity.index_bytes;
  made.blocks = capacity.blocks[i];
  const std::uint32_t chunks = up(made.block_to_tensor + made.blocks * made.index_bytes, 4);
  made.bytes =
      up(chunks + 4 * made.blocks + (scalars ? 0 : 4), std::max(8u, metadata.scalar_bytes));
  return made;
}
static_assert(lay_out(kCapacities[0], {Kind::kPlain, 4, 0}).bytes == 3048);
static_assert(lay_out(kCapacities[1], {Kind::kFused, 5, 0}).bytes == 25208);

// The size tells the layouts of one kernel apart.
constexpr bool distinct() noexcept {
  for (const Kind kind : {Kind::kPlain, Kind::kScalars, Kind::kFused}) {
    for (std::uint32_t depth = 1; depth <= 5; ++depth) {
      for (std::uint32_t scalar = 1; scalar <= 16; scalar *= 2) {
        const Metadata metadata{kind, depth, kind == Kind::kScalars ? scalar : 0};
        const std::uint32_t sizes[] = {lay_out(kCapacities[0], metadata).bytes,
                                       lay_out(kCapacities[1], metadata).bytes,
                                       lay_out(kCapacities[2], metadata).bytes};
        if (sizes[0] == sizes[1] || sizes[1] == sizes[2] || sizes[0] == sizes[2]) {
          return false;
        }
      }
    }
  }
  return true;
}
static_assert(distinct());

}  // namespace

TensorLists tensor_lists(std::string_view function, std::size_t first_parameter_bytes) noexcept {
  const Metadata metadata = metadata_of(function);
  for (const Capacity& capacity : kCapacities) {
    if (metadata.depth == 0) {
      break;
    }
    if (const TensorLists known = lay_out(capacity, metadata);
        known.bytes == first_parameter_bytes) {
      return known;
    }
  }
  return {};
}

}  // namespace deepum::hooks
