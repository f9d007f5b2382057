#include "residency.hpp"

#include <algorithm>

namespace deepum::um_model {

void Memory::append(Block* block) {
  block->older = newest;
  block->newer = nullptr;
  (newest != nullptr ? newest->newer : oldest) = block;
  newest = block;
}

void Memory::remove(Block* block) {
  (block->older != nullptr ? block->older->newer : oldest) = block->newer;
  (block->newer != nullptr ? block->newer->older : newest) = block->older;
  block->older = block->newer = nullptr;
}

Mask Residency::regions_mask(std::uint64_t begin, std::uint64_t end) {
  const auto first = static_cast<int>(begin / kRegionBytes);
  const auto last = static_cast<int>((end - 1) / kRegionBytes);
  const Mask upto = last == kRegions - 1 ? ~Mask{0} : (Mask{1} << (last + 1)) - 1;
  return upto & ~((Mask{1} << first) - 1);
}

void Residency::add(Range range, int device) {
  auto region = std::make_unique<Region>();
  region->range = range;
  region->device = device;
  const std::uint64_t first = range.address / kBlockBytes * kBlockBytes;
  const std::uint64_t end = range.address + range.bytes;
  for (std::uint64_t at = first; at < end; at += kBlockBytes) {
    Block block;
    block.address = at;
    block.valid = regions_mask(std::max(at, range.address) - at, std::min(at + kBlockBytes, end) - at);
    region->blocks.push_back(block);
  }
  regions_[range.address] = std::move(region);
}

std::unique_ptr<Region> Residency::remove(std::uint64_t address) {
  const auto found = regions_.find(address);
  if (found == regions_.end()) {
    return nullptr;
  }
  std::unique_ptr<Region> region = std::move(found->second);
  regions_.erase(found);
  return region;
}

Region* Residency::find(std::uint64_t address) {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) {
    return nullptr;
  }
  Region* region = std::prev(after)->second.get();
  return address < region->range.address + region->range.bytes ? region : nullptr;
}

Mask grow(Mask present, Mask missing, Mask valid, int* faults) {
  const Mask before = present;
  *faults = 0;
  while ((missing & ~present) != 0) {
    const int region = std::countr_zero(missing & ~present);
    ++*faults;
    present |= Mask{1} << region;
    Mask best = 0;
    for (int size = 2; size <= kRegions; size *= 2) {
      const int first = region / size * size;
      const Mask subtree = (size == kRegions ? ~Mask{0} : ((Mask{1} << size) - 1) << first) & valid;
      if (std::popcount(present & subtree) * 100 > 51 * std::popcount(subtree)) {
        best = subtree;
      }
    }
    present |= best;
  }
  return present & ~before;
}

}  // namespace deepum::um_model
