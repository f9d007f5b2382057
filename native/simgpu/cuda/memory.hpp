// What the program allocated: real address space, touched only when something is written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cuda_api.hpp"
#include "engine.hpp"

namespace deepum::simgpu {

namespace um_model = deepum::um_model;  // under that name also where only this namespace is used

enum class MemoryKind { device, managed, host, registered };

struct Allocation {
  std::uint64_t base;
  std::uint64_t bytes;  // as asked for
  // Whole pages or blocks that belong to it; 0: shares a slab, or is the program's own
  // (registered).
  std::uint64_t mapped;
  MemoryKind kind;
  int device;
  CUcontext context;
  unsigned flags;     // as given: CU_MEMHOSTALLOC_*, CU_MEM_ATTACH_*
  std::uint64_t id;   // CU_POINTER_ATTRIBUTE_BUFFER_ID
  CUmemoryPool pool;  // nullptr: of no pool
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0};
  CUmemLocation last_prefetch{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::vector<int> accessed_by;  // devices; -1: the CPU
  bool sync_memops = false;
  // Memory of another process: how often it was opened; 0: this process's own.
  unsigned opens = 0;
  std::uint64_t shared_id = 0;  // of such memory: what `AddressSpace::Shared` says

  std::uint64_t end() const { return base + bytes; }
  bool on_gpu() const { return kind == MemoryKind::device || kind == MemoryKind::managed; }
  um_model::Range range() const { return {base, bytes}; }
};

// Two arenas of reserved addresses: one for device and managed memory, one for pinned host memory.
// An allocation is a private anonymous mapping without swap reservation, aligned to 2 MiB UM
// blocks; small plain device allocations share a block. Only what is shared with other processes is
// not private.
class AddressSpace {
 public:
  AddressSpace();

  // 0 when the address space is used up.
  std::uint64_t take(std::uint64_t bytes, bool gpu);
  void give_back(std::uint64_t base, std::uint64_t mapped);

  Allocation& add(Allocation allocation);
  void remove(std::uint64_t base);
  Allocation* find(std::uint64_t address);  // the allocation that holds the address
  Allocation* at(std::uint64_t base);       // the one that begins there
  const std::map<std::uint64_t, Allocation>& all() const { return allocations_; }
  // Memory of this class's own mapping.
  bool owns(std::uint64_t address) const;
  // Of this, what is private, anonymous, and zero where never written: all that is not shared with
  // other processes.
  bool sparse(std::uint64_t address) const;

  // Whole mapped blocks that other processes may map too (shared_blocks.cpp).
  struct Shared {
    int file;            // a memfd
    std::uint64_t id;    // its inode, by which another process sees that it found the right one
    std::uint64_t base;  // of the blocks
    std::uint64_t bytes;
  };
  // The blocks at `base`, with what they hold, from now on in a file. nullptr: the system has none
  // to give.
  const Shared* share(std::uint64_t base, std::uint64_t bytes);
  // Puts the file of another process in the place of blocks that were just taken. The file is this
  // class's from then on.
  bool join(std::uint64_t base, std::uint64_t bytes, int file, std::uint64_t id);

 private:
  struct Arena {
    std::uint64_t begin = 0, end = 0, next = 0;
    std::map<std::uint64_t, std::uint64_t> holes;  // base, bytes: freed and usable again
  };
  static Arena reserve(std::uint64_t hint, std::uint64_t bytes);
  Arena gpu_, host_;
  void forget_shared(std::uint64_t base);
  std::map<std::uint64_t, Allocation> allocations_;
  std::map<std::uint64_t, Shared> shared_;
};

// Small plain device allocations: pieces of 2 MiB slabs, 512-byte aligned. Thread-safe under the
// driver's lock.
class Slabs {
 public:
  static constexpr std::uint64_t kLargest = 1ull << 20;
  static constexpr std::uint64_t kAlignment = 512;

  std::optional<std::uint64_t> take(std::uint64_t bytes, int device);  // from a slab that has room
  void add(std::uint64_t slab, int device);
  // Gives a piece back; the slab's base when it is empty now (and forgotten here).
  std::optional<std::uint64_t> give_back(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Slab {
    int device;
    std::uint64_t used = 0;
    std::map<std::uint64_t, std::uint64_t> holes;
  };
  std::map<std::uint64_t, Slab> slabs_;
};

}  // namespace deepum::simgpu
