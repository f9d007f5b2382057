// PyTorch's blocks inside allocations: which are active, and so which memory may be discarded.
#include <iterator>

#include "allocation_book.hpp"
#include "allocations.hpp"
#include "discard_order.hpp"
#include "discards.hpp"
#include "launches.hpp"

namespace deepum::runtime {
namespace {

AllocationTable& table = allocation_table;

// Of blocks in plain memory nobody is told; but PyTorch's totals, against which the daemon checks
// its account, count them too.
void plain_block_active(std::uint64_t address, std::uint64_t bytes) {
  const auto memory = plain_at(address);
  if (memory != book().plain.end() && memory->second.device < DEEPUM_MAX_DEVICES) {
    std::uint64_t& known = book().plain_blocks[address];
    book().plain_block_bytes[memory->second.device] += bytes - known;
    known = bytes;
  }
}

void plain_block_inactive(std::uint64_t address) {
  const auto block = book().plain_blocks.find(address);
  const auto memory = plain_at(address);
  if (block != book().plain_blocks.end() && memory != book().plain.end()) {
    book().plain_block_bytes[memory->second.device] -= block->second;
    book().plain_blocks.erase(block);
  }
}

}  // namespace

void Allocations::block_active(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocated,
                               std::uint64_t reserved) noexcept try {
  if (book_broken.load(std::memory_order_relaxed) || bytes == 0) {
    return;
  }
  before_handout(bytes);
  {
    Writing lock;
    UmBlockNode* node = nullptr;
    AllocationRecord* record = table.record(address, &node);
    if (!record) {
      return plain_block_active(address, bytes);
    }
    if (!record->live.load() || bytes > record->base.load() + record->bytes.load() - address) {
      return;
    }
    book().allocated = allocated;
    book().reserved = reserved;
    book().blocks[address] = bytes;
    table.set_block(record, address, bytes, true);
    record->has_blocks.store(true, std::memory_order_release);
    emit_active(record, address, bytes);
  }
  use_after_discards(address, bytes);
} catch (...) {
  return;
}

void Allocations::block_inactive(std::uint64_t address, std::uint64_t bytes,
                                 std::uint64_t allocated, std::uint64_t reserved) noexcept try {
  if (book_broken.load(std::memory_order_relaxed) || bytes == 0) {
    return;
  }
  Writing lock;
  UmBlockNode* node = nullptr;
  AllocationRecord* record = table.record(address, &node);
  if (!record) {
    return plain_block_inactive(address);
  }
  if (!record->live.load()) {
    return;
  }
  const auto block = book().blocks.find(address);
  if (block == book().blocks.end() || block->second != bytes) {
    return;
  }
  book().allocated = allocated;
  book().reserved = reserved;
  book().blocks.erase(block);
  table.set_block(record, address, bytes, false);
  emit_inactive(record, address, bytes);
} catch (...) {
  return;
}

bool Allocations::commit_discard(const Pin& pin, const deepum_command& command,
                                 CUcontext context) noexcept {
  if (writing_allocations || book_broken.load(std::memory_order_relaxed)) {
    return false;
  }
  Writing lock;
  UmBlockNode* node = nullptr;
  const AllocationRecord* record = table.record(pin.address, &node);
  if (!record || !record->live.load() || record->of_program ||
      !record->has_blocks.load(std::memory_order_relaxed)) {
    return false;
  }
  // Whatever was launched on it after that is nothing the command waits for.
  if (table.handed_out(pin.address, pin.bytes) > command.cause) {
    return false;
  }
  const auto block = book().blocks.lower_bound(pin.address);
  if (block != book().blocks.end() && block->first < pin.address + pin.bytes) {
    return false;
  }
  if (block != book().blocks.begin() &&
      std::prev(block)->first + std::prev(block)->second > pin.address) {
    return false;
  }
  return Discards::instance().propose(command.device, context, pin.address, pin.bytes, command.id);
}

}  // namespace deepum::runtime
