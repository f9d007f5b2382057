// What is believed to be where: every UM block of every live allocation, and each device's blocks in the order in which they may be
// evicted. A belief, not the truth: the driver evicts on its own when a fault beats a prefetch, and no interface tells residency.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "records.h"

namespace deepum::core {

// The list that a resident block is in.
enum class BlockPlace : std::uint8_t {
  kKept,
  kExpected,  // placed for a launch still to come
  kDead       // its content is nobody's: it goes before all others, and nothing is copied
};

struct UmBlock {
  UmBlock* before = nullptr;  // its device's list
  UmBlock* after = nullptr;
  std::uint64_t use_position = 0;  // launch (counted from 1) of its last use, actual or placed ahead
  std::uint64_t claim = 0;         // the placement that claimed it last
  std::uint64_t migrated = 0;      // rises from block to block in the order in which they became resident
  std::uint64_t use_sequence = 0;  // of its last actual use
  std::uint64_t streams = 0;       // bit i: used on stream i since it was last moved
  std::uint64_t evicted_for = 0;   // launch that got its space when it was last evicted
  std::uint64_t moved_in = 0;      // last command each way
  std::uint64_t moved_out = 0;
  std::uint64_t discarded = 0;  // last discard
  std::uint64_t died = 0;       // sequence of the report that made it dead
  std::uint64_t brought = 0;    // the prefetch that made it resident, not one in doubt
  std::uint64_t confirmed = 0;  // launch at which it was last known to be there
  std::uint32_t slot = 0;
  std::uint32_t index = 0;
  bool resident = false;
  bool dead = false;  // inactive PyTorch memory, all of it
  BlockPlace place = BlockPlace::kKept;
  bool populated = false;  // has content somewhere
  bool host = false;       // the program wants it there: left alone
};

// UM blocks of one slot.
struct BlockSpan {
  std::uint32_t slot, first, count;
};

// A PyTorch block that is handed out.
struct TorchBlock {
  std::uint64_t bytes;
  std::uint32_t ordinal;
  std::uint32_t name;  // index into Names, bound to its first UM block
  std::uint64_t born;  // launches before it was handed out
};

struct Allocation {
  bool live = false;
  bool of_program = false;
  std::uint32_t generation = 0;
  std::uint32_t device = 0;
  std::uint32_t name = 0;  // index into Names
  std::uint64_t born = 0;  // launches before it
  std::uint64_t bytes = 0;
  std::vector<UmBlock> blocks;
  std::uint64_t first_offset = 0;              // of its first byte in UM block 0
  std::map<std::uint64_t, TorchBlock> active;  // PyTorch blocks handed out, by offset
  std::uint64_t active_bytes = 0;
  bool reported = false;  // PyTorch reports blocks of it
};

// Names of allocations and of PyTorch blocks, equal from run to run, and where they live now.
class Names {
 public:
  std::uint32_t intern(std::uint64_t name);
  std::uint64_t name(std::uint32_t index) const { return names_[index].name; }
  void bind(std::uint32_t index, std::int64_t slot, std::uint32_t first = 0) { names_[index].slot = slot, names_[index].first = first; }
  std::int64_t slot(std::uint32_t index) const { return names_[index].slot; }     // -1: not alive
  std::uint32_t first(std::uint32_t index) const { return names_[index].first; }  // UM block of the slot at which it begins
  std::size_t size() const { return names_.size(); }
  static constexpr std::size_t kBytes = 80;  // of a name: its place, growth included, and its node in the index, about
  std::size_t bytes() const { return names_.size() * kBytes; }

 private:
  struct Name {
    std::uint64_t name;
    std::int64_t slot = -1;
    std::uint32_t first = 0;
  };
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

// Blocks linked through themselves.
class BlockList {
 public:
  UmBlock* head() const { return head_; }
  UmBlock* tail() const { return tail_; }
  std::uint64_t size() const { return size_; }
  void append(UmBlock& block) {
    block.before = tail_;
    block.after = nullptr;
    (tail_ != nullptr ? tail_->after : head_) = &block;
    tail_ = &block;
    ++size_;
  }
  void remove(UmBlock& block) {
    (block.before != nullptr ? block.before->after : head_) = block.after;
    (block.after != nullptr ? block.after->before : tail_) = block.before;
    block.before = block.after = nullptr;
    --size_;
  }

 private:
  UmBlock* head_ = nullptr;
  UmBlock* tail_ = nullptr;
  std::uint64_t size_ = 0;
};

// Blocks that may be evicted, the first to go first: in the order in which they came here, or in that of their migration, which costs a
// logarithm since a block comes back to the place that it had.
class KeptBlocks {
 public:
  void order_by_migration() { by_migration_ = true; }
  void add(UmBlock& block) { by_migration_ ? void(by_age_.insert(&block)) : list_.append(block); }
  void remove(UmBlock& block) { by_migration_ ? void(by_age_.erase(&block)) : list_.remove(block); }
  bool by_migration() const { return by_migration_; }
  // The first that is wanted; nullptr when none of the first `most` is.
  template <typename Wanted>
  UmBlock* find(std::size_t most, Wanted wanted) const {
    if (by_migration_) {
      for (auto place = by_age_.begin(); place != by_age_.end() && most > 0; ++place, --most) {
        if (wanted(**place)) {
          return *place;
        }
      }
      return nullptr;
    }
    for (UmBlock* block = list_.head(); block != nullptr && most > 0; block = block->after, --most) {
      if (wanted(*block)) {
        return block;
      }
    }
    return nullptr;
  }

 private:
  struct Earlier {
    bool operator()(const UmBlock* a, const UmBlock* b) const { return a->migrated < b->migrated; }
  };
  bool by_migration_ = false;
  BlockList list_;
  std::set<UmBlock*, Earlier> by_age_;
};

// Space for one block, by the move that frees it; id 0: free already.
struct Space {
  std::uint64_t id = 0;
  bool discard = false;  // an eviction else
};

// One device's memory in blocks. Space is accounted for from the start: what an eviction frees is known by the command that frees it.
struct DeviceMemory {
  bool known = false;
  std::uint64_t capacity_blocks = 0;
  std::uint64_t allocated_blocks = 0;
  std::uint64_t reported_bytes = 0;    // of PyTorch's live blocks, which it has a total of for each device
  std::uint64_t used_blocks = 0;       // believed resident, what is on its way included
  std::deque<Space> freed;             // what is not taken yet, oldest first, one entry a block
  std::uint64_t withheld_blocks = 0;   // from the window
  std::uint64_t discards_awaited = 0;  // all prefetches to come wait for the discards up to here
  bool window_full = false;            // it held a launch off since the last one
  // Which stream's launches the latest eviction waits for, and the launch at which one last waited for another's.
  std::uint64_t out_streams = 0;
  std::uint64_t mixed_position = 0;
  std::array<std::uint64_t, DEEPUM_MAX_STREAMS> held{};  // by stream: the latest prefetch that a launch of it was held for
  // What is resident, each block in one of them.
  KeptBlocks kept;     // oldest last use, or oldest migration, first
  BlockList expected;  // placed for launches still to come, the next launch first
  BlockList dead;      // the first to die first
  std::uint64_t migrations = 0;

  std::uint64_t free_blocks() const { return capacity_blocks > used_blocks ? capacity_blocks - used_blocks : 0; }
  bool under_pressure() const { return known && allocated_blocks > capacity_blocks; }
  // The block becomes resident, the last to be evicted.
  void add(UmBlock& block);
  // It leaves; its space is free.
  void drop(UmBlock& block);
  // Launch number `position` uses it, or is expected to.
  void use(UmBlock& block, std::uint64_t position, bool expect);
  // Nothing is expected any longer for launches up to that one.
  void expect_none_until(std::uint64_t position);
  // Most blocks that may be expected at a time. Each mistake narrows the window: a block that was evicted for a later launch than the one
  // that needs it again, or one that was expected and is evicted all the same. A launch that it holds off without one widens it.
  std::uint64_t window() const { return capacity_blocks - std::min(withheld_blocks, capacity_blocks - capacity_blocks / 8); }
  void narrow_window();
  void widen_window();
  void take_out(UmBlock& block);               // of its list
  void put(UmBlock& block, BlockPlace place);  // at the end of that list
  // The move that makes room for one more block, none when there was room before.
  Space take_space();
};

}  // namespace deepum::core
