// What is believed to be on one device once all commands given so far are carried out, and the
// space there.
//
// A belief: the driver evicts on its own when a fault beats a prefetch, and no interface tells
// residency. Space is accounted for from the start: what an eviction frees is known by the command
// that frees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "clock.hpp"
#include "core.h"
#include "memory/um_block.hpp"

namespace deepum::core {

// Space for one block, by the move that frees it.
struct Space {
  MoveId move = 0;          // 0: it is free already
  bool discarded = false;   // the move is a discard, which copies nothing; an eviction otherwise
  EventSequence after = 0;  // launch that the move waits for
};

class ResidencyBelief {
 public:
  ResidencyBelief(const deepum_core_settings& settings, const Clock& now,
                  deepum_core_statistics& statistics)
      : settings_(settings),
        parameters_(settings.parameters.residency),
        now_(now),
        statistics_(statistics) {}

  // How many blocks the device holds (capacity.cpp): as reported when it came into use, while
  // memory fills by what the driver says is free, afterwards by what it evicts on its own.
  void report_capacity(const deepum_device_event& event);
  // Of what the device has, managed memory is to occupy so many blocks; kNoBudget: what was
  // reported. What was withdrawn so far is found out again.
  static constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};
  void set_budget(std::uint64_t blocks);
  bool known() const { return known_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t withdrawn() const {
    return withdrawn_;
  }  // by how much less that is than was reported
  // While nothing has left the device but with its allocation, what is not free is what arrived.
  bool filling() const { return filling_; }
  void end_filling();
  // How much had arrived by the event at hand. True: FREE_MEMORY events are of use, launches being
  // new.
  bool note_fill_point(bool learning);
  void read_free_memory(const deepum_free_memory_event& event);
  // Whether a fault shows that the driver took the block: a command brought it, and the faults of a
  // launch that used it, up to event `reported`, are known, so that no prefetch that came late is
  // taken for it.
  bool was_taken(const UmBlock& block, EventSequence reported) const;
  void note_taken(std::uint64_t blocks);

  // What is allocated of the device, in blocks.
  void allocate(std::uint64_t blocks);
  void release(std::uint64_t blocks) { allocated_ -= blocks; }
  std::uint64_t allocated() const { return allocated_; }
  // The program will come to allocate that many, as did the run whose profile it follows.
  void foretell(std::uint64_t blocks) { foretold_ = blocks; }
  std::uint64_t most_allocated() const { return std::max(most_allocated_, foretold_); }
  bool exceeded() const { return known_ && allocated_ > capacity_; }
  bool under_pressure() const { return exceeded() || (known_ && foretold_ > capacity_); }

  // Blocks come and go (residency.cpp).
  void arrive(UmBlock& block);  // its space was taken before
  void depart(UmBlock& block);
  void renew(UmBlock& block) {
    block.residency.migrated = ++migrations_;
  }  // it migrates to where it is
  Space take_space(bool earliest_first);
  void reclaim_space(MoveId undone_discard);  // for a block that did not leave
  void give_space(Space space) { (space.discarded ? discarded_ : evicted_).push_back(space); }
  void count_arrival(bool by_command, bool fetched);
  std::uint64_t used() const { return used_; }
  std::uint64_t free() const { return capacity_ > used_ ? capacity_ - used_ : 0; }
  bool frees_by_evictions_only() const { return discarded_.empty() && free() <= evicted_.size(); }
  std::uint64_t migrations() const { return migrations_; }  // blocks that became resident so far

  // Whether the host holds the same content.
  void mark_clean(UmBlock& block);
  void mark_dirty(UmBlock& block);
  std::uint64_t clean() const { return clean_; }

  // Doubt: a block that was not known to be there for long is asked for again.
  void confirm(UmBlock& block) const;
  void shake(UmBlock& block) const;  // a block beside it faulted
  bool doubts(const UmBlock& block, std::uint64_t after_launches, bool freely);
  void doubt_all_once() {
    freely_doubted_ -= std::min(freely_doubted_, used_);
  }  // the driver surely made room by itself

 private:
  struct FillPoint {
    EventSequence sequence = 0;   // of a launch
    std::uint64_t arrived = 0;    // blocks that had arrived by it,
    std::uint64_t commanded = 0;  // and those of them that a command brought, perhaps sooner
  };
  void limit_capacity();
  void set_capacity(std::uint64_t blocks);
  void withdraw_to(std::uint64_t capacity);
  bool eviction_frees_first() const;
  void forget_lost_space();

  const deepum_core_settings& settings_;
  const deepum_residency_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  bool known_ = false;
  std::uint64_t capacity_ = 0;
  std::uint64_t total_ = 0;     // that the device has,
  std::uint64_t reported_ = 0;  // and of these, the capacity that was reported
  std::uint64_t budget_ = kNoBudget;
  std::uint64_t initial_ = 0;    // the capacity by report and budget
  std::uint64_t withdrawn_ = 0;  // by how much that was found to be too high
  // Launch at which the count of the driver's own evictions began.
  LaunchIndex loss_window_start_ = 0;
  std::uint64_t loss_window_blocks_ = 0;  // capacity that was withdrawn because of those
  std::deque<FillPoint> fill_points_;     // the oldest first
  bool filling_ = true;
  std::uint64_t allocated_ = 0, most_allocated_ = 0, foretold_ = 0;
  std::uint64_t used_ = 0;       // resident, what is on its way included
  std::deque<Space> evicted_;    // space that no block has taken, oldest first, one entry a block
  std::deque<Space> discarded_;  // likewise; it is free earlier, and taken first
  std::uint64_t clean_ = 0;
  std::uint64_t migrations_ = 0;  // blocks that became resident,
  std::uint64_t commanded_ = 0;   // of these by command,
  std::uint64_t fetches_ = 0;     // and of these, with content
  // Blocks that were asked for again without having been unconfirmed for long.
  std::uint64_t freely_doubted_ = 0;
};

}  // namespace deepum::core
