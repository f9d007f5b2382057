// Where each 2 MiB block of managed memory is: contents by 64 KiB region, the driver's eviction list, advice.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine.hpp"

namespace deepum::um_model {

inline constexpr std::uint64_t kRegionBytes = 64ull << 10;
inline constexpr int kRegions = 32;
using Mask = std::uint32_t;  // bit i: the i-th 64 KiB region of a block

inline std::uint64_t mask_bytes(Mask mask) { return static_cast<std::uint64_t>(std::popcount(mask)) * kRegionBytes; }

struct Block {
  std::uint64_t address = 0;
  Mask valid = 0;          // regions that belong to the allocation
  Mask present = 0;        // on `device`
  Mask on_host = 0;        // valid copy in host memory
  Mask prefetched = 0;     // brought by a prefetch and not accessed since
  int device = kCpu;       // where it has a chunk; kCpu: none
  bool discarded = false;  // content indeterminate, chunk still held
  bool read_mostly = false;
  bool in_flight = false;         // a prefetch to the device is carrying it
  double arrival = 0;             // when in_flight, ns
  int preferred = -2;             // device, kCpu, or -2: none
  std::uint32_t accessed_by = 0;  // bit d: device d
  std::uint64_t pinned = 0;       // ticket of the fault service or copy that needs it now
  Block* older = nullptr;         // eviction list, by migration
  Block* newer = nullptr;

  Mask populated() const { return present | on_host; }
};

struct Region {  // one managed allocation
  Range range;
  int device;
  std::vector<Block> blocks;
};

// One device's memory.
struct Memory {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t device_bytes = 0;  // plain device memory
  std::uint64_t chunks = 0;        // blocks that hold a 2 MiB chunk, or space kept for one on its way out
  Block* oldest = nullptr;
  Block* newest = nullptr;

  std::uint64_t resident_bytes() const { return chunks * kBlockBytes; }
  bool has_room() const { return device_bytes + resident_bytes() + kBlockBytes <= capacity_bytes; }
  void append(Block* block);
  void remove(Block* block);
};

class Residency {
 public:
  void add(Range range, int device);
  // Takes the allocation out; its blocks stay alive with the caller until no work uses them.
  std::unique_ptr<Region> remove(std::uint64_t address);
  Region* find(std::uint64_t address);
  const std::map<std::uint64_t, std::unique_ptr<Region>>& regions() const { return regions_; }

  // Calls use(block, mask of the range's regions in it) for each block of managed memory in the range.
  template <typename Use>
  void each(Range range, Use&& use) {
    const std::uint64_t end = range.address + range.bytes;
    for (std::uint64_t at = range.address; at < end;) {
      Region* region = find(at);
      if (region == nullptr) {
        return;
      }
      const std::uint64_t stop = std::min(end, region->range.address + region->range.bytes);
      const std::uint64_t first = region->blocks.front().address;
      while (at < stop) {
        Block& block = region->blocks[(at - first) / kBlockBytes];
        const std::uint64_t block_end = std::min(stop, block.address + kBlockBytes);
        use(block, regions_mask(at - block.address, block_end - block.address));
        at = block_end;
      }
    }
  }

  static Mask regions_mask(std::uint64_t begin, std::uint64_t end);  // offsets in a block, end > begin

 private:
  std::map<std::uint64_t, std::unique_ptr<Region>> regions_;  // by address
};

// The density prefetcher: what the driver brings for the regions that miss. *faults: how many regions fault on the way, each
// fault growing to the largest aligned subtree of which more than 51 % is then present (nvidia-uvm; never beyond the block).
Mask grow(Mask present, Mask missing, Mask valid, int* faults);

}  // namespace deepum::um_model
