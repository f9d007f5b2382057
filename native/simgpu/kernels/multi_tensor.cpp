// multi_tensor_apply_kernel of MultiTensorApply.cuh: foreach operations and fused optimizers. One
// struct holds the addresses of the tensors of each list, their sizes, and for each block which
// chunk of which tensor it handles.
#include <algorithm>
#include <map>

#include "families.hpp"
#include "mangled.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::uint64_t kChunk = 65536;  // elements

// What a build's structs have room for, by depth - 1.
struct Room {
  std::uint32_t tensors[5];       // depth_to_max_tensors
  std::uint32_t with_scalars[5];  // depth_to_max_tensors_scalarlist
  // The same of 16 bytes each, depth_to_max_tensors_scalarlist_of_complex_double.
  std::uint32_t with_complex[5];
  std::uint32_t blocks;       // depth_to_max_blocks
  std::uint32_t index_bytes;  // of a tensor's number in block_to_tensor
};
constexpr Room kRooms[] = {
    // For 4 KiB of parameters: PyTorch up to 2.11.
    {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, {72, 60, 48, 36, 30}, 320, 1},
    // For 32 KiB: from 2.12 on, built with CUDA 13.
    {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, {504, 420, 336, 252, 210}, 2240, 2},
};

struct Metadata {
  std::uint32_t depth, tensors, blocks, index_bytes;
  std::uint32_t sizes, block_to_tensor, block_to_chunk, steps;  // offsets; steps 0: none
};

// A number after `text`, 0 if it is not there.
std::uint32_t number_after(std::string_view name, std::string_view text) {
  const std::size_t at = name.find(text);
  if (at == std::string_view::npos || at + text.size() >= name.size()) return 0;
  const char digit = name[at + text.size()];
  return digit >= '1' && digit <= '9' ? static_cast<std::uint32_t>(digit - '0') : 0;
}

std::optional<Metadata> read_metadata(const Facts& facts) {
  const std::string_view name = facts.kernel();
  Metadata m{};
  std::uint32_t scalar_bytes = 0;
  m.depth = number_after(name, "32FusedOptimizerTensorListMetadataILi");
  const bool steps = m.depth != 0;
  if (!steps) m.depth = number_after(name, "18TensorListMetadataILi");
  if (m.depth == 0) {
    const std::string_view identifier = "TensorListScalarListMetadata";
    const std::vector<std::uint64_t> types = template_type_bytes(name, identifier);
    const std::size_t at = name.find(identifier);
    if (types.empty() || at == std::string_view::npos) return std::nullopt;
    scalar_bytes = static_cast<std::uint32_t>(types[0]);
    m.depth = number_after(name.substr(at + identifier.size()), "Li");
  }
  if (m.depth < 1 || m.depth > 5) return std::nullopt;
  for (const Room& room : kRooms) {
    const std::uint32_t i = m.depth - 1;
    m.tensors = (scalar_bytes == 0    ? room.tensors
                 : scalar_bytes == 16 ? room.with_complex
                                      : room.with_scalars)[i];
    m.blocks = room.blocks;
    m.index_bytes = room.index_bytes;
    m.sizes = 8 * m.depth * m.tensors;
    m.steps = steps ? m.sizes + 8 * m.tensors : 0;
    m.block_to_tensor = m.sizes + (8 + scalar_bytes + (steps ? 8 : 0)) * m.tensors;
    m.block_to_chunk = m.block_to_tensor + (m.index_bytes * m.blocks + 3) / 4 * 4;
    const std::uint32_t end = m.block_to_chunk + 4 * m.blocks;
    // Behind it the first tensor's number, where there are no scalars, and padding.
    if (end <= facts.size(0) && facts.size(0) < end + 16) return m;
  }
  return std::nullopt;
}

struct Modes {
  std::uint32_t read, write;  // bit by list
};

// Functors of ForeachFunctors.cuh end in <..., depth, r_args_depth, res_arg_index>: the first
// r_args are read, one is written. Fused optimizers read gradients (list 1) and update the others.
// What is not known is read and written.
Modes modes_of(std::string_view name, std::uint32_t depth) {
  const std::uint32_t all = (1u << depth) - 1;
  if (name.find("Fused") != std::string_view::npos) return {all, all & ~2u};
  if (name.find("LpNormFunctor") != std::string_view::npos ||
      name.find("LpMaxFunctor") != std::string_view::npos)
    return {all, 0};
  const std::size_t functor = name.find("FunctorI");
  if (functor == std::string_view::npos) return {all, all};
  const std::string expected = "Li" + std::to_string(depth) + "ELi";
  const std::size_t at = name.find(expected, functor);
  if (at == std::string_view::npos || at + expected.size() + 5 >= name.size()) return {all, all};
  const char reads = name[at + expected.size()], result = name[at + expected.size() + 4];
  if (reads < '0' || reads > '5' || result < '0' || result > '4') return {all, all};
  return {(1u << (reads - '0')) - 1, 1u << (result - '0')};
}

// ForeachReduceOp.cu: lpnorm_cleanup(partial norms, addresses of the results, most chunks of a
// tensor); a block for each tensor.
bool describe_norms(const Facts& facts, Touch& touch) {
  if (!facts.named("lpnorm_cleanup") || facts.parameters() != 3) return false;
  const std::uint32_t tensors = std::min(facts.launch().grid[0], facts.size(1) / 8);
  touch.read(facts.pointer(0), std::uint64_t{tensors} * facts.integer(2) * 4);
  for (std::uint32_t i = 0; i < tensors; ++i)
    touch.write(facts.pointer_at(facts.launch().layout.parameters[1].offset + 8 * i), 4);
  return true;
}

}  // namespace

bool describe_multi_tensor(const Facts& facts, Touch& touch) {
  if (describe_norms(facts, touch)) return true;
  if (!facts.named("multi_tensor_apply_kernel")) return false;
  const auto metadata = read_metadata(facts);
  if (!metadata) return false;
  struct Chunks {
    std::uint64_t first, end;
  };
  std::map<std::uint32_t, Chunks> used;  // by tensor
  const std::uint32_t blocks = std::min(facts.launch().grid[0], metadata->blocks);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::uint32_t at = metadata->block_to_tensor + metadata->index_bytes * block;
    const std::uint32_t tensor = metadata->index_bytes == 1 ? facts.value<std::uint8_t>(0, at)
                                                            : facts.value<std::uint16_t>(0, at);
    const std::uint64_t chunk = facts.value<std::uint32_t>(0, metadata->block_to_chunk + 4 * block);
    if (tensor >= metadata->tensors) return false;
    const auto [entry, is_new] = used.try_emplace(tensor, Chunks{chunk, chunk + 1});
    if (!is_new) {
      entry->second = {std::min(entry->second.first, chunk),
                       std::max(entry->second.end, chunk + 1)};
    }
  }
  const std::vector<std::uint64_t> types = template_type_bytes(facts.kernel(), "Functor");
  const std::uint64_t element = types.empty() ? facts.element_bytes() : types[0];
  const Modes modes = modes_of(facts.kernel(), metadata->depth);
  const std::uint32_t start = facts.launch().layout.parameters[0].offset;
  for (const auto& [tensor, chunks] : used) {
    const auto elements = facts.value<std::uint64_t>(0, metadata->sizes + 8 * tensor);
    const std::uint64_t first = chunks.first * kChunk,
                        end = std::min(elements, chunks.end * kChunk);
    if (end <= first) continue;
    for (std::uint32_t list = 0; list < metadata->depth; ++list) {
      const Pointer* const pointer =
          facts.pointer_at(start + 8 * (list * metadata->tensors + tensor));
      const bool read = (modes.read >> list & 1) != 0, write = (modes.write >> list & 1) != 0;
      if (read || write) touch.add(pointer, first * element, (end - first) * element, read, write);
    }
    if (metadata->steps != 0) touch.read(facts.pointer_at(start + metadata->steps + 8 * tensor), 4);
  }
  // norms, found_inf.
  for (std::size_t i = 1; i < facts.parameters(); ++i) touch.both(facts.pointer(i), blocks * 4ull);
  return true;
}

}  // namespace deepum::simgpu
