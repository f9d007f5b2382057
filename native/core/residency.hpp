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

#include "block_list.hpp"
#include "expected_blocks.hpp"
#include "growth_ahead.hpp"
#include "records.h"

namespace deepum::core {

// UM blocks of one slot.
struct BlockSpan {
  std::uint32_t slot, first, count;
};

// When launches use a tensor: whether in one go an iteration (remote_groups.cpp).
struct Regularity {
  std::uint64_t used = 0;                                      // launch that used it last; 0: none did
  std::uint64_t began = 0;                                     // launch at which they began to, this time
  std::uint64_t odd = 0;                                       // launch that used it at another time last; 0: none did
  std::uint32_t odds = 0;                                      // of those in a row
  bool note(std::uint64_t position, std::uint64_t iteration);  // such a launch; true: it is not what happens once, that they come otherwise
  bool once_an_iteration(std::uint64_t position, std::uint64_t iteration) const;
};

// A PyTorch block that is handed out.
struct TorchBlock {
  std::uint64_t bytes;
  std::uint32_t ordinal;
  std::uint32_t name;  // index into Names, bound to its first UM block
  std::uint64_t born;  // launches before it was handed out
  Regularity regularity{};
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
  Regularity regularity;  // where it does not
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
    return list_.find(most, wanted);
  }

 private:
  struct Earlier {
    bool operator()(const UmBlock* a, const UmBlock* b) const { return a->migrated < b->migrated; }
  };
  bool by_migration_ = false;
  BlockList list_;
  std::set<UmBlock*, Earlier> by_age_;
};

// A block to be copied out, and the launch that wrote it.
struct WrittenBlock {
  std::uint32_t slot, index;
  std::uint64_t position;
};

// Space for one block, by the move that frees it; id 0: free already.
struct Space {
  std::uint64_t id = 0;
  bool discard = false;     // an eviction else
  std::uint64_t after = 0;  // sequence of the launch that the move waits for
};

// One device's memory in blocks. Space is accounted for from the start: what an eviction frees is known by the command that frees it.
struct DeviceMemory {
  bool known = false;
  std::uint64_t capacity_blocks = 0;
  std::uint64_t initial_blocks = 0;      // the capacity that was reported when the device came into use
  std::uint64_t withdrawn_blocks = 0;    // by how much that was found to be too high
  std::uint64_t loss_window_start = 0;   // the launch at which the current count of the driver's own evictions began
  std::uint64_t loss_window_blocks = 0;  // capacity withdrawn because of those since then
  struct FillPoint {
    std::uint64_t sequence = 0;   // of a launch
    std::uint64_t arrived = 0;    // blocks that had come by it,
    std::uint64_t commanded = 0;  // and of these by command, so perhaps sooner
  };
  std::deque<FillPoint> fill_points;  // the oldest first
  bool filling = true;                // nothing has left the device but with its allocation
  std::uint64_t commanded = 0;        // blocks that came by command
  std::uint64_t allocated_blocks = 0;
  std::uint64_t most_allocated_blocks = 0;
  std::uint64_t foretold_blocks = 0;  // that it will come to, as in the run whose profile this one follows
  std::uint64_t reported_bytes = 0;   // of PyTorch's live blocks, which it has a total of for each device
  std::uint64_t used_blocks = 0;      // believed resident, what is on its way included
  std::deque<Space> freed;            // by evictions, what is not taken yet, oldest first, one entry a block
  std::deque<Space> emptied;          // by discards: they copy nothing, so their space comes earlier and is taken first
  std::uint64_t withheld_blocks = 0;  // from the window
  std::int64_t grown = 0;             // blocks with new content since the latest launch, less those that died,
  std::uint64_t died_away = 0;        // of which so many were not here
  std::int64_t reserved = 0;          // blocks that will be needed besides what exists now by the last launch that is placed,
  std::int64_t most_reserved = 0;     // and by the one on the way there that needs most: whatever is fetched now is in its way
  GrowthAhead growth_ahead;           // of launches to come that are placed
  std::int64_t soon = 0;              // blocks that the next launches need besides, at most, as was foreseen
  std::uint64_t foreseen_at = 0;      // at that launch
  std::uint64_t mistakes = 0;         // that narrowed it
  bool window_full = false;           // it held a launch off since the last one
  // By direction, of prefetches, of populations and of collapses: all to come wait for its moves up to here.
  using Awaited = std::array<std::uint64_t, DEEPUM_DIRECTIONS + 1>;
  Awaited awaited_by_prefetches{}, awaited_by_populations{}, awaited_by_collapses{};
  Awaited& awaited_by(deepum_command_kind kind) {
    return kind == DEEPUM_COMMAND_POPULATE   ? awaited_by_populations
           : kind == DEEPUM_COMMAND_COLLAPSE ? awaited_by_collapses
                                             : awaited_by_prefetches;
  }
  // Which stream's launches the latest eviction waits for, and the launch at which one last waited for another's.
  std::uint64_t out_streams = 0;
  std::uint64_t mixed_position = 0;
  // By stream: the latest prefetch and the latest population that a launch of it was held for.
  std::array<std::array<std::uint64_t, 2>, DEEPUM_MAX_STREAMS> held{};
  // What is resident, each block in one of them.
  KeptBlocks kept;  // oldest last use, or oldest migration, first
  bool by_next_use = false;
  std::uint64_t launch_queue = 0;         // launches that the driver lets the host run ahead
  std::uint64_t latest = 0;               // launch
  std::uint64_t woken = 0, foreseen = 0;  // of late, and of these those whose next use is known
  BlockList resting;                      // by next use: used lately, the first used first
  ExpectedBlocks expected;                // by launches to come
  ExpectedBlocks expected_copied;         // by next use: likewise, what the host has as well
  KeptBlocks copied;                      // as kept, what the host has as well
  std::deque<WrittenBlock> to_copy;       // written longest ago first, at once
  std::deque<WrittenBlock> to_settle;     // and what is to settle before
  std::uint64_t copied_blocks = 0;        // that are here and on the host
  std::uint64_t evicted_lately = 0;       // blocks, in the iteration before this one
  std::uint64_t evictions = 0;            // since
  std::uint64_t copied_away = 0;          // launch at which a block last left by a copy,
  std::uint64_t demanded = 0;             // and at which one last left because a launch that was placed wanted its space
  std::uint64_t counted_from = 0;         // that launch
  BlockList dead;                         // the first to die first
  bool driver_evicts = false;             // for what is fetched: nothing is evicted by command
  KeptBlocks arrivals;                    // then: all that is resident, in the order in which the driver evicts it
  std::uint64_t fetched_blocks = 0;       // for launches to come
  bool only_placed = false;               // what is expected is what was placed for launches to come
  std::uint64_t migrations = 0;           // blocks that became resident,
  std::uint64_t fetches = 0;              // and of these, since it was under pressure, those that had content
  std::uint64_t freely_doubted = 0;       // blocks that were asked for again without having been unconfirmed for long

  std::uint64_t wanted = 0;  // blocks that the launch being placed misses here

  std::uint64_t free_blocks() const { return capacity_blocks > used_blocks ? capacity_blocks - used_blocks : 0; }
  // What the window limits.
  std::uint64_t ahead_blocks() const { return only_placed ? expected.size() : fetched_blocks; }
  std::uint64_t reserved_blocks() const { return static_cast<std::uint64_t>(std::max({reserved, most_reserved, std::int64_t{0}})); }
  // The driver surely made room by itself.
  void doubt_all_once() { freely_doubted -= std::min(freely_doubted, used_blocks); }
  bool exceeded() const { return known && allocated_blocks > capacity_blocks; }
  bool under_pressure() const { return exceeded() || (known && foretold_blocks > capacity_blocks); }
  // The block becomes resident, the last to be evicted.
  void add(UmBlock& block);
  // It is prefetched where it is: by its migration it is the last to be evicted.
  void renew(UmBlock& block);
  // It leaves; its space is free.
  void drop(UmBlock& block);
  // Launch number `position` uses it.
  void use(UmBlock& block, std::uint64_t position);
  // The program brought it, or handed it out: it will use it, and so it stays as if launch `position` had used it.
  void spare(UmBlock& block, std::uint64_t position);
  // Launch number `position` is expected to use it.
  void expect(UmBlock& block, std::uint64_t position);
  // Launches up to that one are past: what they did not use is expected by the next that needs it, or by none.
  void expect_none_until(std::uint64_t position);
  void expect_nothing();
  // What has rested at that launch is expected by its next use, or by none.
  void wake(std::uint64_t position, std::uint64_t iteration);
  // Most blocks that may be fetched ahead at a time. Each mistake narrows the window: a block that was evicted for a later launch than the
  // one that needs it again, or one that was fetched and is evicted unused. A launch that it holds off without one widens it.
  std::uint64_t window() const { return capacity_blocks - std::min(withheld_blocks, capacity_blocks - capacity_blocks / 8); }
  void copy(UmBlock& block);    // the host has what it has
  void uncopy(UmBlock& block);  // not any longer
  void count_evictions(std::uint64_t position, std::uint64_t iteration);
  void narrow_window();
  void widen_window();
  void take_out(UmBlock& block);  // of its list
  void settle_fetched(UmBlock& block);
  // At the end of that list; `position` is that of its last use, or of the next one for a block that is expected.
  void put(UmBlock& block, BlockPlace place, std::uint64_t position);
  // The same for the other of two lists: what it was fetched for stands.
  void move(UmBlock& block, BlockPlace place);
  // A use was missed that had been learned: what the end of the chain says of the block is that of a later iteration.
  bool overdue(const UmBlock& block) const { return by_next_use && block.awaited != 0 && block.awaited <= latest; }
  void forget_lost_space();
  // The move that makes room for one more block, none when there was room before.
  Space take_space(bool fetches);
  // The oldest eviction whose space nobody has waits for an earlier launch than the oldest such discard.
  bool frees_first() const { return !freed.empty() && (emptied.empty() || freed.front().after < emptied.front().after); }
  // All free space is that of evictions, which take their time.
  bool only_freed() const { return emptied.empty() && free_blocks() <= freed.size(); }
};

}  // namespace deepum::core
