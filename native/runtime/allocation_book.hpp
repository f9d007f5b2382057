// What only writers of the allocation table use, under one lock: free slots and ordinals, PyTorch's
// blocks, plain memory; and the events that tell the daemon of allocations and blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "allocation_table.hpp"
#include "records.h"

namespace deepum::runtime {

struct PlainAllocation {
  std::uint64_t bytes;
  std::uint64_t context;
  std::uint32_t device;
};

struct Book {
  std::mutex mutex;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_slots;
  std::uint32_t slots_used = 0;  // slots from here on were never given out
  struct Ordinals {
    std::set<std::uint64_t> free;
    std::uint64_t used = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Ordinals> ordinals;  // by (device, bytes)
  // Active PyTorch blocks: address -> bytes.
  std::map<std::uint64_t, std::uint64_t> blocks;
  std::map<std::uint64_t, PlainAllocation> plain;
  // Active PyTorch blocks in plain memory: address -> bytes.
  std::map<std::uint64_t, std::uint64_t> plain_blocks;
  // Their sum: what of PyTorch's totals the daemon is not told.
  std::uint64_t plain_block_bytes[DEEPUM_MAX_DEVICES] = {};
  std::uint64_t allocated = 0;  // PyTorch's latest totals
  std::uint64_t reserved = 0;
};

// Never destroyed: allocations may be freed after static destructors ran.
Book& book() noexcept;
void make_book();

extern std::atomic<bool> book_made;
// Forked while another thread was writing: the maps cannot be trusted.
extern std::atomic<bool> book_broken;
// An emit that announces from under our own lock.
extern constinit thread_local bool writing_allocations;

class Writing {
 public:
  Writing() noexcept {
    if (!book_made.load(std::memory_order_acquire)) {
      make_book();
    }
    book().mutex.lock();
    writing_allocations = true;
  }
  ~Writing() {
    writing_allocations = false;
    book().mutex.unlock();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
};

// The plain memory that holds the address, under the lock; end() if none does.
std::map<std::uint64_t, PlainAllocation>::iterator plain_at(std::uint64_t address) noexcept;

// Of live records, under the lock.
std::uint32_t slot_of(const AllocationRecord* record) noexcept;
void emit_allocate(const AllocationRecord* record) noexcept;
void emit_free(std::uint32_t slot, std::uint32_t generation, std::uint32_t device) noexcept;
void emit_active(const AllocationRecord* record, std::uint64_t address,
                 std::uint64_t bytes) noexcept;
void emit_inactive(const AllocationRecord* record, std::uint64_t address,
                   std::uint64_t bytes) noexcept;

}  // namespace deepum::runtime
