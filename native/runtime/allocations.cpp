#include "allocations.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "allocation_book.hpp"
#include "allocation_table.hpp"
#include "discard_order.hpp"
#include "discards.hpp"

namespace deepum::runtime {
namespace {

AllocationTable& table = allocation_table;
std::atomic<std::uint64_t> bytes_by_device[DEEPUM_MAX_DEVICES];

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

Allocation describe(const AllocationRecord* record) noexcept {
  return {record->base.load(std::memory_order_relaxed),
          record->bytes.load(std::memory_order_relaxed),
          record->name.load(std::memory_order_relaxed),
          record->context,
          slot_of(record),
          record->generation.load(std::memory_order_relaxed),
          record->device,
          true,
          record->of_program};
}

void count_bytes(std::uint32_t device, std::int64_t change) noexcept {
  if (device < DEEPUM_MAX_DEVICES) {
    bytes_by_device[device].fetch_add(static_cast<std::uint64_t>(change),
                                      std::memory_order_relaxed);
  }
}

// Under the lock, the record no longer live and unpinned.
Allocation retire(AllocationRecord* record) {
  const Allocation allocation = describe(record);
  emit_free(allocation.slot, allocation.generation, allocation.device);
  auto& blocks = book().blocks;
  if (record->has_blocks.load(std::memory_order_relaxed)) {
    blocks.erase(blocks.lower_bound(allocation.base),
                 blocks.lower_bound(allocation.base + allocation.bytes));
  }
  table.erase(record);
  book().ordinals[{allocation.device, allocation.bytes}].free.insert(record->ordinal);
  count_bytes(allocation.device, -static_cast<std::int64_t>(allocation.bytes));
  record->bytes.store(0, std::memory_order_relaxed);
  book().free_slots.push(allocation.slot);
  return allocation;
}

void forget_plain_blocks(const Allocation& allocation) {
  auto& blocks = book().plain_blocks;
  const auto end = blocks.lower_bound(allocation.base + allocation.bytes);
  for (auto block = blocks.lower_bound(allocation.base); block != end;
       block = blocks.erase(block)) {
    book().plain_block_bytes[allocation.device] -= block->second;
  }
}

// A pin is held for one call of the mover; should its thread be stopped for seconds, the program
// must still go on.
void wait_out_pins(const AllocationRecord* record) noexcept {
  for (int tries = 0; tries < 1000000 && record->pins.load() != 0; ++tries) {
    sched_yield();
  }
}

}  // namespace

Allocations& Allocations::instance() noexcept {
  static constinit Allocations allocations;
  return allocations;
}

bool Allocations::add(std::uint64_t base, std::uint64_t bytes, std::uint32_t device, bool managed,
                      bool of_program, std::uint64_t context) noexcept try {
  if (book_broken.load(std::memory_order_relaxed) || bytes == 0) {
    return false;
  }
  Writing lock;
  Book& writer = book();
  if (!managed) {
    writer.plain[base] = {bytes, context, device};
    return true;
  }
  if (!table.prepare(base, bytes)) {
    return false;
  }
  std::uint32_t slot = writer.slots_used;
  if (!writer.free_slots.empty()) {
    slot = writer.free_slots.top();
    writer.free_slots.pop();
  } else if (slot < kMaxSlots) {
    ++writer.slots_used;
  } else {
    return false;
  }
  auto& ordinals = writer.ordinals[{device, bytes}];
  std::uint64_t ordinal = ordinals.used;
  if (!ordinals.free.empty()) {
    ordinal = *ordinals.free.begin();
    ordinals.free.erase(ordinals.free.begin());
  } else {
    ++ordinals.used;
  }
  AllocationRecord* record = table.records() + slot;
  const std::uint64_t blocks =
      ((base + bytes - 1) >> DEEPUM_UM_BLOCK_SHIFT) - (base >> DEEPUM_UM_BLOCK_SHIFT) + 1;
  record->base.store(base, std::memory_order_relaxed);
  record->bytes.store(bytes, std::memory_order_relaxed);
  record->name.store(mix(mix(device + 1, bytes), ordinal + 1), std::memory_order_relaxed);
  record->range.store(
      block_range(slot, 0, std::min<std::uint64_t>(blocks, (1u << DEEPUM_RANGE_COUNT_BITS) - 1)),
      std::memory_order_relaxed);
  record->has_blocks.store(false, std::memory_order_relaxed);
  record->of_program = of_program;
  record->device = device;
  record->ordinal = ordinal;
  record->context = context;
  record->generation.fetch_add(1, std::memory_order_relaxed);
  record->live.store(true);
  table.insert(record);
  count_bytes(device, static_cast<std::int64_t>(bytes));
  emit_allocate(record);
  return true;
} catch (...) {
  return false;  // out of host memory: the allocation works, unseen
}

std::optional<Allocation> Allocations::remove(std::uint64_t base) noexcept try {
  if (book_broken.load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  AllocationRecord* record = nullptr;
  {
    Writing lock;
    UmBlockNode* node = nullptr;
    record = table.record(base, &node);
    if (!record || record->base.load(std::memory_order_relaxed) != base || !record->live.load()) {
      const auto plain = book().plain.find(base);
      if (plain == book().plain.end()) {
        return std::nullopt;
      }
      const Allocation allocation{
          base, plain->second.bytes, 0, plain->second.context, 0, 0, plain->second.device, false,
          false};
      book().plain.erase(plain);
      forget_plain_blocks(allocation);
      return allocation;
    }
    record->live.store(false);
  }
  wait_out_pins(record);
  wait_for_discards(describe(record).base, describe(record).bytes);
  Writing lock;
  return retire(record);
} catch (...) {
  return std::nullopt;
}

void Allocations::forget_context(std::uint64_t context, void (*ended)(const Allocation&)) noexcept
    try {
  std::vector<std::uint64_t> bases;
  {
    if (book_broken.load(std::memory_order_relaxed)) {
      return;
    }
    Writing lock;
    for (std::uint32_t slot = 0; slot < book().slots_used; ++slot) {
      const AllocationRecord* record = table.records() + slot;
      if (record->live.load() && record->context == context) {
        bases.push_back(record->base.load(std::memory_order_relaxed));
      }
    }
    for (const auto& [base, plain] : book().plain) {
      if (plain.context == context) {
        bases.push_back(base);
      }
    }
  }
  for (const std::uint64_t base : bases) {
    if (const auto allocation = remove(base)) {
      ended(*allocation);
    }
  }
} catch (...) {
  return;
}

std::optional<Allocation> Allocations::find(std::uint64_t address) const noexcept {
  if (book_broken.load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  Writing lock;
  UmBlockNode* node = nullptr;
  if (const AllocationRecord* record = table.record(address, &node);
      record && record->live.load()) {
    return describe(record);
  }
  const auto plain = plain_at(address);
  if (plain == book().plain.end()) {
    return std::nullopt;
  }
  return Allocation{plain->first,
                    plain->second.bytes,
                    0,
                    plain->second.context,
                    0,
                    0,
                    plain->second.device,
                    false,
                    false};
}

bool Allocations::lookup(std::uint64_t address, Extent* extent) const noexcept {
  return table.lookup(address, extent);
}

void Allocations::while_all_stays(void (*body)(void* data), void* data) noexcept {
  if (!book_broken.load(std::memory_order_relaxed)) {
    Writing lock;
    body(data);
  }
}

bool Allocations::range_of(std::uint64_t address, std::uint64_t bytes,
                           Extent* extent) const noexcept {
  UmBlockNode* node = nullptr;
  const AllocationRecord* record = bytes ? table.record(address, &node) : nullptr;
  if (!record) {
    return false;
  }
  const std::uint64_t base = record->base.load(std::memory_order_relaxed);
  extent->name = record->name.load(std::memory_order_relaxed);
  extent->offset = address - base;
  const std::uint64_t room = record->bytes.load(std::memory_order_relaxed) - extent->offset;
  if (record->has_blocks.load(std::memory_order_acquire)) {
    extent->name = 0;  // as in lookup
    extent->offset = 0;
  }
  const std::uint64_t last = (address + std::min(bytes, room) - 1) >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t first = address >> DEEPUM_UM_BLOCK_SHIFT;
  const std::uint64_t slot =
      record->range.load(std::memory_order_relaxed) >> DEEPUM_RANGE_SLOT_SHIFT;
  extent->range =
      block_range(slot, first - (base >> DEEPUM_UM_BLOCK_SHIFT),
                  std::min<std::uint64_t>(last - first + 1, (1u << DEEPUM_RANGE_COUNT_BITS) - 1));
  return true;
}

Allocations::Pin::Pin(Pin&& other) noexcept
    : address(other.address), bytes(std::exchange(other.bytes, 0)), slot_(other.slot_) {}

Allocations::Pin::~Pin() {
  if (bytes != 0) {
    table.records()[slot_].pins.fetch_sub(1);
  }
}

// The pin is counted before `live` is read, and `remove` clears `live` before it reads the count,
// both sequentially consistent: one of the two sees the other.
Allocations::Pin Allocations::pin(std::uint32_t slot, std::uint32_t generation,
                                  std::uint32_t first_block, std::uint32_t block_count) noexcept {
  Pin pin;
  AllocationRecord* records = table.records();
  if (!records || slot >= kMaxSlots || block_count == 0) {
    return pin;
  }
  AllocationRecord& record = records[slot];
  record.pins.fetch_add(1);
  if (record.live.load() && record.generation.load() == generation) {
    const std::uint64_t base = record.base.load();
    const std::uint64_t end = base + record.bytes.load();
    const std::uint64_t origin = base & ~(kUmBlockBytes - 1);
    const std::uint64_t from = std::max(base, origin + first_block * kUmBlockBytes);
    const std::uint64_t to =
        std::min(end, origin + (std::uint64_t{first_block} + block_count) * kUmBlockBytes);
    if (from < to) {
      pin.address = from;
      pin.bytes = to - from;
      pin.slot_ = slot;
      return pin;
    }
  }
  record.pins.fetch_sub(1);
  return pin;
}

void Allocations::announce() noexcept {
  if (writing_allocations || book_broken.load(std::memory_order_relaxed)) {
    return;
  }
  Writing lock;
  for (std::uint32_t slot = 0; slot < book().slots_used; ++slot) {
    const AllocationRecord* record = table.records() + slot;
    if (!record->live.load()) {
      continue;
    }
    emit_allocate(record);
    if (!record->has_blocks.load(std::memory_order_relaxed)) {
      continue;
    }
    const std::uint64_t base = record->base.load(std::memory_order_relaxed);
    const auto end =
        book().blocks.lower_bound(base + record->bytes.load(std::memory_order_relaxed));
    for (auto block = book().blocks.lower_bound(base); block != end; ++block) {
      emit_active(record, block->first, block->second);
    }
  }
}

std::uint64_t Allocations::managed_bytes(std::uint32_t device) const noexcept {
  return device < DEEPUM_MAX_DEVICES ? bytes_by_device[device].load(std::memory_order_relaxed) : 0;
}

void Allocations::abandon_in_child() noexcept {
  if (!book_made.load(std::memory_order_acquire)) {
    return;
  }
  if (!book().mutex.try_lock()) {
    book_broken.store(true);
    new (&book().mutex) std::mutex;
  } else {
    book().mutex.unlock();
  }
  writing_allocations = false;
  if (AllocationRecord* records = table.records()) {
    for (std::uint32_t slot = 0; slot < book().slots_used; ++slot) {
      if (records[slot].pins.load() != 0) {
        records[slot].pins.store(0);  // of a mover that is not in this process
      }
    }
  }
}

}  // namespace deepum::runtime
