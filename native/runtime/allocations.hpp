// The live allocations of this process: one definition for the hooks (who looks pointers up at
// every launch) and the mover (who turns a command's blocks back into addresses).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "records.h"

namespace deepum::runtime {

struct Allocation {
  std::uint64_t base;     // address of the first byte
  std::uint64_t bytes;    // as asked for
  std::uint64_t name;     // deepum_allocate_event.name
  std::uint64_t context;  // as given to add
  std::uint32_t slot;
  std::uint32_t generation;
  std::uint32_t device;  // CUDA ordinal
  // False: device memory below the size threshold; it has no slot and no events.
  bool managed;
  bool of_program;  // the program's own managed memory
};

// What a pointer points into.
struct Extent {
  std::uint64_t name;    // of the allocation
  std::uint64_t offset;  // of the pointer inside the allocation, bytes
  // The UM blocks of the PyTorch block (or allocation) that holds the pointer.
  deepum_block_range range;
};

class Allocations {
 public:
  static Allocations& instance() noexcept;

  // Registers memory the driver just returned and emits its event. False: no room in the table; the
  // memory then works, unseen. context: any number that names the CUDA context, for forget_context.
  bool add(std::uint64_t base, std::uint64_t bytes, std::uint32_t device, bool managed,
           bool of_program, std::uint64_t context = 0) noexcept;
  // Call before the driver frees the memory. Waits out a pin (microseconds). nullopt: not ours.
  std::optional<Allocation> remove(std::uint64_t base) noexcept;
  // The driver freed all memory of a context with it. Calls back for each allocation that this
  // ended.
  void forget_context(std::uint64_t context, void (*ended)(const Allocation&)) noexcept;
  std::optional<Allocation> find(std::uint64_t address) const noexcept;

  // PyTorch's accounting of blocks inside allocations.
  void block_active(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocated,
                    std::uint64_t reserved) noexcept;
  void block_inactive(std::uint64_t address, std::uint64_t bytes, std::uint64_t allocated,
                      std::uint64_t reserved) noexcept;

  // The hot path: lock-free, a few nanoseconds, for any 64-bit value. False: not a pointer into
  // managed memory.
  bool lookup(std::uint64_t address, Extent* extent) const noexcept;
  // The UM blocks of exactly [address, address + bytes), cut to the allocation. Lock-free. False:
  // not managed memory, or 0 bytes.
  bool range_of(std::uint64_t address, std::uint64_t bytes, Extent* extent) const noexcept;
  // Nothing ends, nor is handed out, while it runs: what it emits of memory is told before the
  // memory's end is.
  void while_all_stays(void (*body)(void* data), void* data) noexcept;

  // For the mover: addresses of blocks [first_block, first_block + block_count) cut to the
  // allocation. While the pin lives the memory is not handed to cuMemFree. Empty when (slot,
  // generation) is no longer live.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&&) = delete;
    ~Pin();
    explicit operator bool() const noexcept { return bytes != 0; }
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;

   private:
    friend class Allocations;
    std::uint32_t slot_ = 0;
  };
  Pin pin(std::uint32_t slot, std::uint32_t generation, std::uint32_t first_block,
          std::uint32_t block_count) noexcept;

  // For the mover: may the content of pinned memory be dropped? If all of it is inactive PyTorch
  // memory, in whole UM blocks, it is from here on: Discards has it under the command's id in the
  // device's lane, before anybody can make it active. Not if it was active after the event that
  // caused the command.
  bool commit_discard(const Pin& pin, const deepum_command& command, CUcontext context) noexcept;

  // Emits every live allocation and active block again, after events were lost.
  void announce() noexcept;

  std::uint64_t managed_bytes(std::uint32_t device) const noexcept;
  void abandon_in_child() noexcept;  // after fork: keep the map, drop locks
};

}  // namespace deepum::runtime
