#include "block_table.hpp"

#include <algorithm>

namespace deepum::um_model {

void BlockTable::map(Range range, MemoryKind kind, int device) {
  mappings_[range.address] = {range.bytes, kind, device, 0};
  if (kind != MemoryKind::managed) {
    return;
  }
  const std::uint64_t last = (range.address + range.bytes - 1) / kBlockBytes;
  for (std::uint64_t number = range.address / kBlockBytes; number <= last; ++number) {
    auto& group = groups_[number / kGroup];
    if (!group) {
      group = std::make_unique<Group>();
    }
    ++(*group)[number % kGroup].mappings;
  }
}

BlockTable::Mapping BlockTable::unmap(std::uint64_t address) {
  const auto found = mappings_.find(address);
  if (found == mappings_.end()) {
    return {};
  }
  const Mapping mapping = found->second;
  mappings_.erase(found);
  if (mapping.kind == MemoryKind::managed) {
    const std::uint64_t last = (address + mapping.bytes - 1) / kBlockBytes;
    for (std::uint64_t number = address / kBlockBytes; number <= last; ++number) {
      --block(number)->mappings;
    }
  }
  return mapping;
}

const BlockTable::Mapping* BlockTable::find(std::uint64_t address, std::uint64_t* base) const {
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) {
    return nullptr;
  }
  --found;
  if (address - found->first >= found->second.bytes) {
    return nullptr;
  }
  *base = found->first;
  return &found->second;
}

void BlockTable::split(std::span<const Access> accesses, std::vector<Piece>& pieces,
                       std::uint64_t now) const {
  pieces.clear();
  for (const Access& access : accesses) {
    std::uint64_t low = access.range.address;
    const std::uint64_t high = low + access.range.bytes;
    while (low < high) {
      std::uint64_t base = 0;
      if (const Mapping* const mapping = find(low, &base)) {
        const std::uint64_t end = std::min(high, base + mapping->bytes);
        if (mapping->kind == MemoryKind::managed) {
          pieces.push_back({low, end, access.read, access.write, true, access.written_first,
                            access.estimated, access.held_since});
          if (access.estimated && access.write) {
            mapping->guessed_at = now;
          }
        }
        low = end;
      } else {
        const auto after = mappings_.upper_bound(low);
        const std::uint64_t end = after == mappings_.end() ? high : std::min(high, after->first);
        pieces.push_back({low, end, access.read, access.write, false});
        low = end;
      }
    }
  }
}

std::uint64_t Sweep::steps(std::span<const Piece> pieces) {
  std::uint64_t steps = 0;
  for (const Piece& piece : pieces) {
    steps += piece.managed ? (piece.high - 1) / kBlockBytes - piece.low / kBlockBytes + 1 : 1;
  }
  return steps;
}

}  // namespace deepum::um_model
