// From any 64-bit value to the managed allocation it points into, without a lock: a directory of 16
// GiB chunks, a node for each UM block. Written under the lock of allocation_book.hpp; a reader
// that races with a writer over memory that the program is not using may get an outdated answer,
// never a fault: records and chunks are not unmapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocations.hpp"
#include "records.h"

namespace deepum::runtime {

inline constexpr std::uint64_t kUmBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
inline constexpr std::uint32_t kMaxSlots = 1u << 18;
inline constexpr deepum_block_range block_range(std::uint64_t slot, std::uint64_t first,
                                                std::uint64_t count) noexcept {
  return slot << DEEPUM_RANGE_SLOT_SHIFT | first << DEEPUM_RANGE_FIRST_SHIFT | count;
}

// One live managed allocation; the index in the record array is its slot.
struct alignas(64) AllocationRecord {
  std::atomic<std::uint64_t> base{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> name{0};
  std::atomic<deepum_block_range> range{0};  // all of it
  // Small allocations may share their first and last UM block.
  std::atomic<AllocationRecord*> next_in_first{nullptr};
  std::atomic<AllocationRecord*> next_in_last{nullptr};
  std::atomic<std::uint32_t> generation{0};
  std::atomic<std::uint32_t> pins{0};
  std::atomic<bool> live{false};
  // PyTorch reported a block inside: its blocks are the extents, not the whole.
  std::atomic<bool> has_blocks{false};
  bool of_program = false;
  std::uint32_t device = 0;
  std::uint64_t ordinal = 0;
  std::uint64_t context = 0;
};

// A UM block. Only PyTorch blocks that cross a 2 MiB boundary need to be known: any other lies in
// this UM block alone. At most one enters from the UM block before (covering offsets [0,
// enter_end)) and one leaves to the next (from leave_start on).
struct UmBlockNode {
  std::atomic<AllocationRecord*> owner{nullptr};
  std::atomic<deepum_block_range> enter_range{0};
  std::atomic<deepum_block_range> leave_range{0};
  std::atomic<std::uint32_t> enter_end{0};
  // 2 MiB - leave_start, so that zero memory means "none leaves".
  std::atomic<std::uint32_t> leave_unused{0};
};
static_assert(sizeof(UmBlockNode) == 32);

class AllocationTable {
 public:
  static constexpr unsigned kChunkShift = 34;
  static constexpr unsigned kAddressBits = 48;
  static constexpr std::uint64_t kChunkNodes = 1ull << (kChunkShift - DEEPUM_UM_BLOCK_SHIFT);

  AllocationRecord* records() const noexcept { return records_.load(std::memory_order_acquire); }
  UmBlockNode* node(std::uint64_t address) const noexcept {
    if (address >> kAddressBits) {
      return nullptr;
    }
    UmBlockNode* chunk = directory_[address >> kChunkShift].load(std::memory_order_acquire);
    return chunk ? chunk + (address >> DEEPUM_UM_BLOCK_SHIFT & (kChunkNodes - 1)) : nullptr;
  }
  // The record whose bytes hold the address; *node_out its UM block.
  AllocationRecord* record(std::uint64_t address, UmBlockNode** node_out) const noexcept {
    UmBlockNode* found = node(address);
    if (!found) {
      return nullptr;
    }
    *node_out = found;
    AllocationRecord* record = found->owner.load(std::memory_order_acquire);
    if (!record) {
      return nullptr;
    }
    if (holds(record, address)) [[likely]] {
      return record;
    }
    return further_record(record, address);
  }
  // The hot path of every launch (Allocations::lookup): here so that the hooks can have it inline.
  [[gnu::always_inline]] bool lookup(std::uint64_t address, Extent* extent) const noexcept {
    UmBlockNode* at = nullptr;
    const AllocationRecord* found = record(address, &at);
    if (!found) {
      return false;
    }
    const std::uint64_t base = found->base.load(std::memory_order_relaxed);
    extent->name = found->name.load(std::memory_order_relaxed);
    extent->offset = address - base;
    extent->range = found->range.load(std::memory_order_relaxed);
    if (!found->has_blocks.load(std::memory_order_acquire)) {
      return true;
    }
    // PyTorch hands blocks of one size out in an order of its own, so a tensor's place changes from
    // step to step: it is left out of the hash, and the core names the block instead
    // (native/core/memory/torch_blocks.hpp).
    extent->name = 0;
    extent->offset = 0;
    const auto within = static_cast<std::uint32_t>(address & (kUmBlockBytes - 1));
    if (within < at->enter_end.load(std::memory_order_acquire)) {
      extent->range = at->enter_range.load(std::memory_order_relaxed);
    } else if (within >= kUmBlockBytes - at->leave_unused.load(std::memory_order_acquire)) {
      extent->range = at->leave_range.load(std::memory_order_relaxed);
    } else {
      const std::uint64_t first =
          (address >> DEEPUM_UM_BLOCK_SHIFT) - (base >> DEEPUM_UM_BLOCK_SHIFT);
      extent->range = block_range(extent->range >> DEEPUM_RANGE_SLOT_SHIFT, first, 1);
    }
    return true;
  }

  // Writers only, under the lock.
  // Maps what insert needs; false: no memory.
  bool prepare(std::uint64_t base, std::uint64_t bytes) noexcept;
  void insert(AllocationRecord* record) noexcept;
  void erase(AllocationRecord* record) noexcept;
  void set_block(const AllocationRecord* record, std::uint64_t address, std::uint64_t bytes,
                 bool active) noexcept;
  // The event that last reported any of the memory as handed out; kept by UM block.
  void set_handed_out(std::uint64_t address, std::uint64_t bytes, std::uint64_t sequence) noexcept;
  std::uint64_t handed_out(std::uint64_t address, std::uint64_t bytes) const noexcept;

 private:
  // A chunk's memory is its nodes and then a sequence for each, which no launch looks at.
  static constexpr std::size_t kChunkBytes =
      kChunkNodes * (sizeof(UmBlockNode) + sizeof(std::uint64_t));
  std::uint64_t* handed_out_of(std::uint64_t block) const noexcept;

  static std::atomic<AllocationRecord*>* next(AllocationRecord* record,
                                              std::uint64_t address) noexcept {
    const bool first =
        (record->base.load(std::memory_order_relaxed) ^ address) >> DEEPUM_UM_BLOCK_SHIFT == 0;
    return first ? &record->next_in_first : &record->next_in_last;
  }

  static bool holds(const AllocationRecord* record, std::uint64_t address) noexcept {
    return address - record->base.load(std::memory_order_relaxed) <
           record->bytes.load(std::memory_order_relaxed);
  }
  static AllocationRecord* further_record(AllocationRecord* record, std::uint64_t address) noexcept;

  std::atomic<UmBlockNode*> directory_[1ull << (kAddressBits - kChunkShift)] = {};
  std::atomic<AllocationRecord*> records_{nullptr};
};

extern AllocationTable allocation_table;  // the one behind Allocations::instance()

}  // namespace deepum::runtime
