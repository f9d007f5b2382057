#include "allocation_table.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace deepum::runtime {
namespace {

void* map_zeroes(std::size_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

constinit AllocationTable allocation_table;

// Small allocations that share a UM block. Bounded, should a writer be relinking the chain under
// our feet.
AllocationRecord* AllocationTable::further_record(AllocationRecord* record,
                                                  std::uint64_t address) noexcept {
  for (int steps = 0; record && steps < 4096; ++steps) {
    if (holds(record, address)) {
      return record;
    }
    record = next(record, address)->load(std::memory_order_acquire);
  }
  return nullptr;
}

bool AllocationTable::prepare(std::uint64_t base, std::uint64_t bytes) noexcept {
  // Fresh mappings are zeroes, which is what all members start with; nothing is ever unmapped.
  if (!records_.load(std::memory_order_relaxed)) {
    void* memory = map_zeroes(kMaxSlots * sizeof(AllocationRecord));
    if (!memory) {
      return false;
    }
    records_.store(static_cast<AllocationRecord*>(memory), std::memory_order_release);
  }
  if (bytes == 0 || base >> kAddressBits || (base + bytes - 1) >> kAddressBits ||
      base + bytes < base) {
    return false;
  }
  for (std::uint64_t chunk = base >> kChunkShift; chunk <= (base + bytes - 1) >> kChunkShift;
       ++chunk) {
    if (directory_[chunk].load(std::memory_order_relaxed)) {
      continue;
    }
    void* memory = map_zeroes(kChunkBytes);
    if (!memory) {
      return false;
    }
    directory_[chunk].store(static_cast<UmBlockNode*>(memory), std::memory_order_release);
  }
  return true;
}

void AllocationTable::insert(AllocationRecord* record) noexcept {
  const std::uint64_t base = record->base.load(std::memory_order_relaxed);
  const std::uint64_t last =
      (base + record->bytes.load(std::memory_order_relaxed) - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t first = base >> DEEPUM_UM_BLOCK_SHIFT;
  for (std::uint64_t block = first; block <= last; ++block) {
    UmBlockNode* at = node(block << DEEPUM_UM_BLOCK_SHIFT);
    if (block == first || block == last) {
      next(record, block << DEEPUM_UM_BLOCK_SHIFT)
          ->store(at->owner.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    at->owner.store(record, std::memory_order_release);
  }
}

void AllocationTable::erase(AllocationRecord* record) noexcept {
  const std::uint64_t base = record->base.load(std::memory_order_relaxed);
  const std::uint64_t last =
      (base + record->bytes.load(std::memory_order_relaxed) - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t first = base >> DEEPUM_UM_BLOCK_SHIFT;
  for (std::uint64_t block = first; block <= last; ++block) {
    const std::uint64_t address = block << DEEPUM_UM_BLOCK_SHIFT;
    UmBlockNode* at = node(address);
    std::atomic<AllocationRecord*>* link = &at->owner;
    if (block != first && block != last) {
      link->store(nullptr, std::memory_order_release);  // shared with no other
    }
    while (AllocationRecord* here = link->load(std::memory_order_relaxed)) {
      if (here == record) {
        link->store(next(record, address)->load(std::memory_order_relaxed),
                    std::memory_order_release);
        break;
      }
      link = next(here, address);
    }
    at->enter_end.store(0, std::memory_order_relaxed);
    at->leave_unused.store(0, std::memory_order_relaxed);
  }
}

void AllocationTable::set_block(const AllocationRecord* record, std::uint64_t address,
                                std::uint64_t bytes, bool active) noexcept {
  const std::uint64_t origin =
      record->base.load(std::memory_order_relaxed) >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t first = address >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t last = (address + bytes - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  if (first == last) {
    return;
  }
  const std::uint64_t slot =
      record->range.load(std::memory_order_relaxed) >> DEEPUM_RANGE_SLOT_SHIFT;
  const deepum_block_range range = block_range(slot, first - origin, last - first + 1);
  UmBlockNode* head = node(first << DEEPUM_UM_BLOCK_SHIFT);
  if (active) {
    head->leave_range.store(range, std::memory_order_relaxed);
  }
  const auto before_end =
      static_cast<std::uint32_t>(kUmBlockBytes - (address & (kUmBlockBytes - 1)));
  if (active || head->leave_range.load(std::memory_order_relaxed) == range) {
    head->leave_unused.store(active ? before_end : 0, std::memory_order_release);
  }
  for (std::uint64_t block = first + 1; block <= last; ++block) {
    UmBlockNode* at = node(block << DEEPUM_UM_BLOCK_SHIFT);
    const std::uint64_t end =
        std::min(address + bytes - (block << DEEPUM_UM_BLOCK_SHIFT), kUmBlockBytes);
    if (active) {
      at->enter_range.store(range, std::memory_order_relaxed);
    }
    if (active || at->enter_range.load(std::memory_order_relaxed) == range) {
      at->enter_end.store(active ? static_cast<std::uint32_t>(end) : 0, std::memory_order_release);
    }
  }
}

std::uint64_t* AllocationTable::handed_out_of(std::uint64_t block) const noexcept {
  UmBlockNode* chunk = directory_[block / kChunkNodes].load(std::memory_order_relaxed);
  return reinterpret_cast<std::uint64_t*>(chunk + kChunkNodes) + block % kChunkNodes;
}

void AllocationTable::set_handed_out(std::uint64_t address, std::uint64_t bytes,
                                     std::uint64_t sequence) noexcept {
  const std::uint64_t last = (address + bytes - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  for (std::uint64_t block = address >> DEEPUM_UM_BLOCK_SHIFT; block <= last; ++block) {
    *handed_out_of(block) = sequence;
  }
}

std::uint64_t AllocationTable::handed_out(std::uint64_t address,
                                          std::uint64_t bytes) const noexcept {
  const std::uint64_t last = (address + bytes - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  std::uint64_t latest = 0;
  for (std::uint64_t block = address >> DEEPUM_UM_BLOCK_SHIFT; block <= last; ++block) {
    latest = std::max(latest, *handed_out_of(block));
  }
  return latest;
}

}  // namespace deepum::runtime
