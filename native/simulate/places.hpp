// The live allocations of a replayed program: where they are, and which of PyTorch's blocks are
// handed out. What the runtime's Allocations know (native/runtime/allocations.hpp), at addresses of
// our own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "records.h"
#include "um_model/engine.hpp"

namespace deepum::simulate {

inline constexpr std::uint64_t kBlockBytes = um_model::kBlockBytes;

struct Place {
  bool live = false;
  bool of_program = false;
  bool reported = false;  // PyTorch reports blocks of it
  std::uint32_t generation = 0;
  std::uint32_t device = 0;
  std::uint64_t base = 0;  // of the first byte
  std::uint64_t bytes = 0;
  std::map<std::uint64_t, std::uint64_t> active;  // PyTorch's blocks: bytes by offset
  // By UM block: sequence of the latest report that some of it is active.
  std::vector<std::uint64_t> handed_out;
};

class Places {
 public:
  static constexpr std::uint32_t kMostSlots = 1u << DEEPUM_RANGE_SLOT_BITS;

  // The new place; nullptr for a slot or size out of range. One that still lives there is over.
  Place* allocate(const deepum_allocate_event& event);
  void release(std::uint32_t slot);
  Place* find(std::uint32_t slot) {
    return slot < slots_.size() && slots_[slot].live ? &slots_[slot] : nullptr;
  }
  void activate(const deepum_block_event& event);
  void deactivate(const deepum_block_event& event);

  // The bytes of these UM blocks that belong to the allocation; nothing if it is gone.
  std::optional<um_model::Range> blocks(std::uint32_t slot, std::uint32_t generation,
                                        std::uint64_t first, std::uint64_t count);
  // The UM block at an address; nothing where none lives.
  struct BlockPlace {
    std::uint32_t slot;
    std::uint64_t index;
  };
  std::optional<BlockPlace> block_at(std::uint64_t address) const;
  // As Allocations::commit_discard: whole UM blocks of inactive PyTorch memory, and none of it
  // handed out since the event `cause`.
  bool may_discard(std::uint32_t slot, um_model::Range range, std::uint64_t cause);

 private:
  std::uint64_t take(std::uint64_t bytes);  // first fit, as the simulated driver
  void give_back(std::uint64_t base, std::uint64_t bytes);

  std::vector<Place> slots_;
  std::map<std::uint64_t, std::uint64_t> holes_;
  std::uint64_t next_ = 1ull << 45;
};

}  // namespace deepum::simulate
