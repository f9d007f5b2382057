// What is mapped, and the state of every UM block (2 MiB) of managed memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "density.hpp"
#include "handles.hpp"
#include "kernel.hpp"

namespace deepum::um_model {

inline constexpr std::int16_t kNoLocation = -2;

// A block holds a 2 MiB chunk of at most one device: the driver's root chunk, taken whole even if
// few regions are resident. A region has content if it is on the device, on the CPU, on its way, or
// (READ_MOSTLY) on both.
struct Block {
  Regions on_device = 0;
  Regions on_cpu = 0;      // in the host's memory or on the disk behind it (host_memory.hpp)
  Regions arriving = 0;    // being copied to `device`
  Regions leaving = 0;     // being copied to the CPU, no longer mapped on the device
  Regions discarded = 0;   // on the device, not to be copied when evicted
  Regions lost = 0;        // discarded and not written since, as far as that is known (losses.hpp)
  Regions prefetched = 0;  // brought by a prefetch and not accessed since
  Regions touched = 0;     // by launch number `launch`
  std::uint64_t launch = 0;
  std::uint64_t lost_by = 0;  // number of the discard that lost regions, and when it did
  std::uint64_t lost_at = 0;
  std::uint64_t batch = 0;  // fault batch that last brought it
  Block* older = nullptr;   // neighbours in the driver's eviction order
  Block* newer = nullptr;
  std::uint32_t queued = 0;  // prefetches to device `queued_to` that will come to this block
  // Of the content of the fields: a transfer in progress belongs to one.
  std::uint32_t generation = 0;
  std::uint32_t accessed_by = 0;  // ACCESSED_BY, one bit a device
  std::int16_t device = kNoLocation;
  std::int16_t queued_to = kNoLocation;
  std::int16_t preferred = kNoLocation;
  std::uint16_t mappings = 0;
  bool read_mostly = false;
  bool remote_mapped = false;  // mapped on a device though it is on the CPU
  bool in_order = false;       // linked by older and newer
};

enum class MemoryKind { managed, device, unknown };  // unknown: the host's own

// A part of an access: managed memory of one device, or unknown.
struct Piece {
  std::uint64_t low, high;  // addresses
  bool read, write;
  bool managed;
  bool written_first = false;
  bool estimated = false;
  std::uint64_t held_since = 0;
};

class BlockTable {
 public:
  void map(Range range, MemoryKind kind, int device);
  // What was mapped at exactly this address, gone from the table; bytes 0 if nothing was.
  struct Mapping {
    std::uint64_t bytes = 0;
    MemoryKind kind = MemoryKind::unknown;
    int device = 0;
    // When a kernel last wrote to it that may have written more than is known (losses.hpp).
    mutable std::uint64_t guessed_at = 0;
  };
  Mapping unmap(std::uint64_t address);
  const Mapping* find(std::uint64_t address, std::uint64_t* base) const;

  // Splits accesses by what is mapped there; plain device memory is left out, being always there.
  // Estimated writes are noted in the mapping.
  void split(std::span<const Access> accesses, std::vector<Piece>& pieces, std::uint64_t now) const;

  // The block with this number (address / 2 MiB); never moves. nullptr: no such block was ever
  // mapped.
  Block* block(std::uint64_t number) const {
    if (number / kGroup != last_number_ || last_ == nullptr) {
      const auto found = groups_.find(number / kGroup);
      if (found == groups_.end()) {
        return nullptr;
      }
      last_number_ = number / kGroup;
      last_ = found->second.get();
    }
    return &(*last_)[number % kGroup];
  }
  // Blocks whose number has the same quotient by kGroup lie in one array.
  static constexpr std::uint64_t kGroup = 512;

 private:
  using Group = std::array<Block, kGroup>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Group>> groups_;
  std::map<std::uint64_t, Mapping> mappings_;
  mutable std::uint64_t last_number_ = 0;
  mutable Group* last_ = nullptr;
};

// Walks over the blocks of a list of pieces, in order; cheap to copy.
class Sweep {
 public:
  Sweep() = default;
  Sweep(const BlockTable& table, std::span<const Piece> pieces) : table_(&table), pieces_(pieces) {
    enter();
  }

  bool done() const { return piece_ == pieces_.size(); }
  const Piece& piece() const { return pieces_[piece_]; }
  // nullptr: host memory, or nothing mapped there; the piece is one step then.
  Block* block() const { return block_; }
  std::uint64_t low() const { return low_; }
  std::uint64_t high() const { return high_; }
  std::uint64_t bytes() const { return high_ - low_; }
  std::uint64_t block_address() const { return low_ & ~(kBlockBytes - 1); }
  Regions regions() const { return regions_; }
  void next() {
    low_ = high_;
    if (low_ == pieces_[piece_].high) {
      ++piece_;
      enter();
    } else {
      settle(block_ != nullptr ? block_ + 1 : nullptr);
    }
  }
  static std::uint64_t steps(std::span<const Piece> pieces);

 private:
  void enter() {
    if (piece_ == pieces_.size()) {
      return;
    }
    low_ = pieces_[piece_].low;
    settle(nullptr);
  }
  void settle(Block* following) {
    const Piece& piece = pieces_[piece_];
    if (!piece.managed) {
      block_ = nullptr;
      high_ = piece.high;
      return;
    }
    const std::uint64_t number = low_ / kBlockBytes;
    block_ = following != nullptr && number % BlockTable::kGroup != 0 ? following
                                                                      : table_->block(number);
    const std::uint64_t end = (number + 1) * kBlockBytes;
    high_ = end < piece.high ? end : piece.high;
    regions_ = regions_touched(low_ - number * kBlockBytes, high_ - number * kBlockBytes);
  }

  const BlockTable* table_ = nullptr;
  std::span<const Piece> pieces_;
  std::size_t piece_ = 0;
  std::uint64_t low_ = 0, high_ = 0;
  Block* block_ = nullptr;
  Regions regions_ = 0;
};

// Calls visit(block, regions, number) for every mapped block of a range. outward: regions partly
// covered count; else only whole ones.
template <typename Visit>
void each_block(const BlockTable& table, Range range, bool outward, Visit visit) {
  std::uint64_t low = range.address, high = range.address + range.bytes;
  if (high < low) {
    return;
  }
  if (!outward) {
    low = (low + kRegionBytes - 1) & ~(kRegionBytes - 1);
    high &= ~(kRegionBytes - 1);
  }
  while (low < high) {
    const std::uint64_t number = low / kBlockBytes, start = number * kBlockBytes;
    const std::uint64_t end = high - start < kBlockBytes ? high : start + kBlockBytes;
    Block* const block = table.block(number);
    if (block != nullptr && block->mappings != 0) {
      visit(*block, regions_touched(low - start, end - start), number);
    }
    low = end;
  }
}

}  // namespace deepum::um_model
