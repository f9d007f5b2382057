// What is allocated: slots, PyTorch's blocks in them, and the names under which both are learned.
// It translates ranges of an event into runs by name and back. What the end or the beginning of
// content means for residency, learned uses or copies is the business of its listeners.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "clock.hpp"
#include "core.h"
#include "memory/block_use.hpp"
#include "memory/names.hpp"
#include "memory/regularity.hpp"
#include "memory/torch_blocks.hpp"
#include "memory/um_block.hpp"

namespace deepum::core {

// A PyTorch block that is handed out.
struct TorchBlock {
  std::uint64_t bytes;
  std::uint32_t ordinal;  // TorchBlockNames
  std::uint32_t name;     // index into Names, bound to its first UM block
  LaunchIndex born;       // the latest launch when it was handed out
  Regularity regularity{};
};

struct Allocation {
  bool live = false;
  bool of_program = false;
  std::uint32_t generation = 0;
  std::uint32_t device = 0;
  std::uint32_t name = 0;  // index into Names
  LaunchIndex born = 0;    // the latest launch when it was made
  std::uint64_t bytes = 0;
  std::vector<UmBlock> blocks;
  std::uint64_t first_offset = 0;              // of its first byte in UM block 0
  std::map<std::uint64_t, TorchBlock> active;  // PyTorch blocks that are handed out, by offset
  std::uint64_t active_bytes = 0;
  bool reported = false;  // PyTorch reports blocks of it
  Regularity regularity;  // of the whole, where PyTorch does not report blocks

  // UM blocks of which that range has all bytes. Slot 0 in the result stands for this allocation.
  BlockSpan whole_blocks(std::uint64_t offset, std::uint64_t bytes) const;
};

// A listener hears of each block in turn, in the order in which listeners were added. That order is
// part of what is decided: commands come out in it.
class ContentListener {
 public:
  // All of the block became inactive PyTorch memory. `content.dead` is set, and was not before
  // where `died_now`.
  virtual void content_died(UmBlock& block, bool died_now) = 0;
  // Memory of the block is handed out. `content.dead` still says whether it was dead.
  virtual void content_begins(UmBlock& block) = 0;
  // The allocation ends, with all of its blocks.
  virtual void memory_gone(Allocation& allocation) = 0;
  // A name is about to be added.
  virtual void naming() {}

 protected:
  ~ContentListener() = default;
};

class AddressSpace {
 public:
  AddressSpace(const deepum_core_settings& settings, const Clock& now,
               deepum_core_statistics& statistics);
  void add_listener(ContentListener& listener) { listeners_.push_back(&listener); }

  // False: the event is malformed, or more than is kept.
  bool allocate(const deepum_allocate_event& event);
  bool release(std::uint32_t slot, std::uint32_t generation);
  bool hand_out(const deepum_block_event& event) { return report(event, true); }
  bool take_back(const deepum_block_event& event) { return report(event, false); }
  void forget_everything();  // events were lost

  Allocation* live(std::uint32_t slot) {
    return slot < slots_.size() && slots_[slot].live ? &slots_[slot] : nullptr;
  }
  const Allocation* live(std::uint32_t slot) const {
    return slot < slots_.size() && slots_[slot].live ? &slots_[slot] : nullptr;
  }
  Allocation& at(std::uint32_t slot) { return slots_[slot]; }
  const Allocation& at(std::uint32_t slot) const { return slots_[slot]; }
  std::span<Allocation> slots() { return slots_; }
  std::span<UmBlock> blocks(const BlockSpan& span) {
    return {slots_[span.slot].blocks.data() + span.first, span.count};
  }
  // The blocks of a range as events have it. False: it does not lie in a live allocation.
  bool resolve(deepum_block_range range, std::span<UmBlock>& found);
  UmBlock* find(std::uint32_t slot, std::uint32_t generation, std::uint64_t index);

  // A run in terms of the PyTorch block that it belongs to: the one that spans just these UM
  // blocks, or the one that fills most of them; in terms of the allocation where there is none.
  struct Named {
    BlockRun run;
    LaunchIndex born;
    Regularity* regularity;
  };
  Named name_run(Allocation& allocation, std::uint32_t first, std::uint32_t count);
  // Where a run is now. False: its memory was freed.
  bool locate(const BlockRun& run, BlockSpan& found) const {
    const std::int64_t slot = names_.slot(run.name);
    const Allocation* const allocation =
        slot >= 0 ? live(static_cast<std::uint32_t>(slot)) : nullptr;
    if (allocation == nullptr) {
      return false;
    }
    const std::uint64_t first = std::uint64_t{names_.first(run.name)} + run.first;
    const std::uint64_t end = std::min<std::uint64_t>(first + run.count, allocation->blocks.size());
    found = {static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(first),
             static_cast<std::uint32_t>(end - first)};
    return first < end;
  }

  // The same by the name itself. False as well where nothing ever had it.
  bool locate(std::uint64_t name, std::uint32_t first, std::uint32_t count,
              BlockSpan& found) const {
    std::uint32_t index = 0;
    return names_.find(name, index) && locate({index, first, count}, found);
  }

  const Names& names() const { return names_; }
  Names& names() { return names_; }
  // Names have half of the memory for tables at most, unless what lives has more.
  bool names_full() const;
  void forget_names();  // but those of what lives

  std::uint64_t allocated_bytes() const { return allocated_bytes_; }
  std::uint64_t allocated_blocks() const { return allocated_blocks_; }
  std::uint64_t dead_bytes() const;

 private:
  bool report(const deepum_block_event& event, bool active);
  void begin(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes);
  void end(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes);
  void forget(Allocation& allocation);
  void forget(const Allocation& allocation, const TorchBlock& block);
  void announce_name();

  const Clock& now_;
  deepum_core_statistics& statistics_;
  std::size_t most_names_;
  std::vector<Allocation> slots_;  // an allocation may move, its blocks' addresses stay
  Names names_;
  std::size_t names_kept_ = 0;  // when names were last forgotten: those of what lived
  TorchBlockNames torch_blocks_;
  std::uint64_t torch_block_count_ = 0;  // handed out
  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t allocated_blocks_ = 0;
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES>
      reported_bytes_{};  // of PyTorch's live blocks, by device
  std::vector<ContentListener*> listeners_;
};

}  // namespace deepum::core
