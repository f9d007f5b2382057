// Placement: a launch's blocks are made resident, at hand or ahead.
//
// The timing rule: an eviction waits for its victim's last use, a prefetch for the space its victims leave, each move of a block for
// that block's previous move. Space is taken in launch order, so a launch's blocks are never evicted by a later one before it ran.
#include <algorithm>
#include <cstdlib>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
constexpr std::uint64_t kEvictionBatch = 8;  // blocks evicted at once when room runs out
constexpr std::uint64_t kLongPast = 4096;    // launches: more than a queue of the driver's holds
constexpr std::size_t kVictimScan = 4096;    // blocks looked at for one victim,
constexpr std::size_t kExpectedScan = 256;   // and of those that are expected
constexpr std::uint64_t kRested = 32;        // blocks brought since a last use, so that the space comes in time: 64 MiB, milliseconds
constexpr std::uint64_t kFar = 16;           // part of an iteration, after which what left comes back in time
constexpr std::uint64_t kLeastDoubt = 16;    // launches for which what is known to be there is not doubted

}  // namespace

std::span<const BlockSpan> Engine::locate(const BlockTable& blocks, std::uint64_t distance) {
  located_.clear();
  located_uses_.clear();
  const std::span<const BlockRun> runs = blocks.chain();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const BlockRun& run = runs[i];
    if (blocks.ages()[i] < distance) {
      continue;  // handed out on the way there: what bears its name now is another
    }
    const std::int64_t slot = names_.slot(run.name);
    const Allocation* allocation = slot >= 0 ? live(static_cast<std::uint32_t>(slot)) : nullptr;
    if (allocation == nullptr) {
      continue;  // freed since it was learned
    }
    const std::uint64_t first = std::uint64_t{names_.first(run.name)} + run.first;
    const std::uint64_t end = std::min<std::uint64_t>(first + run.count, allocation->blocks.size());
    if (first < end) {
      located_.push_back({static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)});
      located_uses_.push_back(blocks.uses()[i].now);
    }
  }
  return located_;
}

bool Engine::place(std::span<const BlockSpan> spans, std::span<const Use> uses, std::uint64_t position, bool actual) {
  ++claim_;
  // First what is there is claimed, so that bringing the rest does not evict it.
  bool missing = false;
  for (DeviceMemory& device : devices_) {
    device.wanted = 0;
  }
  for (const BlockSpan& span : spans) {
    Allocation& allocation = slots_[span.slot];
    DeviceMemory& device = devices_[allocation.device];
    const bool doubtful = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
    UmBlock* const blocks = allocation.blocks.data() + span.first;
    statistics_.operations += span.count;
    for (UmBlock* block = blocks; block != blocks + span.count; ++block) {
      if (!block->resident) {
        missing = missing || !block->stays_away();
        device.wanted += block->stays_away() ? 0 : 1;
        continue;
      }
      use(device, *block, position, actual);
      if (doubtful && position_ > block->confirmed + doubt_after_) {
        // Long unconfirmed: the driver may have taken it. A prefetch of what is there costs nothing.
        command(DEEPUM_COMMAND_PREFETCH, allocation.device, *block, 0, 0, block->moved_out);
        ++statistics_.reprefetches;
        block->confirmed = position_;
        if (device.driver_evicts) {
          device.renew(*block);
        }
      }
    }
  }
  if (!missing) {
    return true;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const BlockSpan& span = spans[i];
    Allocation& allocation = slots_[span.slot];
    DeviceMemory& device = devices_[allocation.device];
    UmBlock* const blocks = allocation.blocks.data() + span.first;
    statistics_.operations += span.count;
    for (UmBlock* block = blocks; block != blocks + span.count; ++block) {
      if (!block->resident && !block->stays_away() && !bring(device, *block, uses[i], position, actual)) {
        return false;
      }
    }
  }
  return true;
}

void Engine::use(DeviceMemory& device, UmBlock& block, std::uint64_t position, bool actual) {
  block.claim = claim_;
  actual ? device.use(block, position) : device.expect(block, position);
}

std::uint64_t Engine::doubt_after(const Execution& execution) const {
  if (execution.period == 0) {
    return settings_.confidence_launches;
  }
  // A little less than the period, since iterations differ a little; not after every launch where one kernel is launched over and over.
  return std::min<std::uint64_t>(settings_.confidence_launches, std::max(execution.period - execution.period / 8, kLeastDoubt));
}

bool Engine::bring(DeviceMemory& device, UmBlock& block, Use use_for, std::uint64_t position, bool actual) {
  const std::uint32_t ordinal = slots_[block.slot].device;
  const bool decide = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
  if (decide && !actual && device.ahead_blocks() >= device.window()) {
    device.window_full = true;
    return false;
  }
  const UmBlock* outgoing = nullptr;
  if (decide &&
      !(device.driver_evicts ? yield_room(device, ordinal, position, actual, outgoing) : make_room(device, ordinal, position, actual))) {
    return actual;  // a launch that does not fit runs all the same: the driver makes its room
  }
  if (!decide && device.known && device.free_blocks() == 0) {  // as the driver will do
    if (UmBlock* first = device.kept.find(1, [](const UmBlock&) { return true; }); first != nullptr) {
      device.drop(*first);
    }
  }
  if (decide && block.evicted_for > position) {
    device.narrow_window();
  }
  block.evicted_for = 0;
  device.grown += block.fresh ? 1 : 0;
  block.filled = block.fresh ? position_ : block.filled;
  block.fresh = false;
  if (decide) {
    prepare_duplicate(device, block, use_for);
  }
  const Space space = device.take_space();
  device.wanted -= std::min<std::uint64_t>(device.wanted, 1);
  device.add(block);
  block.used_after = device.migrations;
  use(device, block, position, actual);
  block.fetched = !actual;
  device.fetched_blocks += actual ? 0 : 1;
  block.confirmed = position_;
  block.streams = 0;
  statistics_.peak_resident_bytes = std::max(statistics_.peak_resident_bytes, device.used_blocks * kBlockBytes);
  if (decide) {
    await_move(device, ordinal, std::max(block.discarded, space.discard ? space.id : 0));
    const std::uint64_t freed = space.discard ? 0 : space.id;
    if (direction_of(freed) != direction_of(block.moved_out)) {
      await_move(device, ordinal, std::min(freed, block.moved_out));
    }
    command(DEEPUM_COMMAND_PREFETCH, ordinal, block, outgoing != nullptr ? outgoing->use_sequence : 0,
            outgoing != nullptr ? outgoing->streams : 0, std::max(block.moved_out, freed));
    block.brought = block.moved_in;
    block.populated = true;  // a prefetch populates what has no content yet
  }
  return true;
}

// A launch that starts before its prefetches are done faults on what they are about to bring, at several times the cost, and the driver
// makes room for it by evicting what it likes, behind the belief's back. So it is held back until they are done. What a prefetch
// waits for was launched before; still a program may let a stream wait for what it does later (a value that it writes, a kernel that
// spins), so a launch is held only by evictions behind launches of its own stream.
void Engine::hold(std::span<const BlockSpan> spans, std::uint32_t stream) {
  if (settings_.policy != DEEPUM_POLICY_CORRELATION) {
    return;
  }
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES> until{};
  for (const BlockSpan& span : spans) {
    const Allocation& allocation = slots_[span.slot];
    for (std::uint32_t i = span.first; i < span.first + span.count; ++i) {
      until[allocation.device] = std::max(until[allocation.device], allocation.blocks[i].brought);
    }
  }
  for (std::uint32_t ordinal = 0; ordinal < DEEPUM_MAX_DEVICES; ++ordinal) {
    DeviceMemory& device = devices_[ordinal];
    const bool own = device.out_streams == 0 || (device.out_streams == 1ull << stream &&
                                                 (device.mixed_position == 0 || position_ - device.mixed_position > kLongPast));
    if (until[ordinal] <= device.held[stream] || !own) {
      continue;
    }
    device.held[stream] = until[ordinal];
    deepum_command made{};
    made.id = ++last_id_;
    made.cause = sequence_;
    made.stream_mask = 1ull << stream;
    made.after_move = until[ordinal];
    made.kind = DEEPUM_COMMAND_HOLD;
    made.device = static_cast<std::uint16_t>(ordinal);
    commands_.push_back(made);
    ++statistics_.holds;
  }
}

namespace {

// Of what nobody is known to need, the first in order: what leaves without a copy is not preferred, unless the order says so.
template <typename Wanted>
UmBlock* first_kept(const DeviceMemory& device, bool clean_first, std::uint64_t until, Wanted wanted) {
  if (clean_first) {
    UmBlock* const far = device.copied.find(
        kVictimScan, [&](const UmBlock& block) { return wanted(block) && (block.awaited == 0 || block.next_use == Use::kDies || block.awaited > until); });
    if (far != nullptr) {
      return far;
    }
  }
  UmBlock* const copied = device.copied.find(kVictimScan, wanted);
  UmBlock* const kept = device.kept.find(kVictimScan, wanted);
  if (copied == nullptr || kept == nullptr) {
    return copied != nullptr ? copied : kept;
  }
  const bool earlier = device.kept.by_migration() ? copied->migrated < kept->migrated : copied->use_position < kept->use_position;
  return earlier ? copied : kept;
}

}  // namespace

// For the placement of launch number `position`. Dead blocks go first, then what no launch is expected to use, then what is expected by
// launches not placed yet, the farthest first, unless it was used so lately that its space would come late. `any`: the launch at hand has
// nowhere else to go, so that it takes what others expect.
UmBlock* Engine::next_victim(DeviceMemory& device, std::uint64_t position, bool any) {
  const auto unclaimed = [&](const UmBlock& block) {
    ++statistics_.operations;
    return block.claim != claim_;
  };
  device.wake(position_);
  for (UmBlock* block = device.dead.head(); block != nullptr; block = block->after) {
    if (unclaimed(*block)) {
      return block;
    }
  }
  if (UmBlock* victim = first_kept(device, settings_.eviction_order == DEEPUM_EVICT_CLEAN_FIRST, position_ + iteration_ / kFar, unclaimed);
      victim != nullptr) {
    return victim;
  }
  if (device.by_next_use) {
    return furthest(device, position, any);
  }
  const auto rested = [&](const UmBlock& block) {
    return unclaimed(block) && !block.fetched && device.migrations - block.used_after >= kRested;
  };
  if (UmBlock* victim = device.expected.find_beyond(std::max(position, position_ + placed_), kExpectedScan, rested);
      victim != nullptr || !any) {
    return victim;
  }
  UmBlock* victim = device.expected.find_beyond(0, kVictimScan, unclaimed);
  if (victim != nullptr) {
    device.narrow_window();
  }
  return victim;
}

// By next use: the farthest. What leaves without a copy costs one way instead of two, so it goes at half the distance.
UmBlock* Engine::furthest(DeviceMemory& device, std::uint64_t position, bool any) {
  const auto farther = [&](std::uint64_t beyond, std::size_t most, auto wanted) {
    UmBlock* const moved = device.expected.find_beyond(beyond, most, wanted);
    UmBlock* const dropped = device.expected_copied.find_beyond(beyond, most, wanted);
    if (moved == nullptr || dropped == nullptr) {
      return moved != nullptr ? moved : dropped;
    }
    return 2 * (dropped->use_position - position_) >= moved->use_position - position_ ? dropped : moved;
  };
  const auto unclaimed = [&](const UmBlock& block) {
    ++statistics_.operations;
    return block.claim != claim_;
  };
  UmBlock* victim = farther(std::max(position, position_ + placed_), kExpectedScan,
                            [&](const UmBlock& block) { return unclaimed(block) && !block.fetched; });
  if (victim != nullptr || !any) {
    return victim;
  }
  for (victim = device.resting.head(); victim != nullptr; victim = victim->after) {
    if (unclaimed(*victim)) {
      return victim;
    }
  }
  victim = farther(0, kVictimScan, unclaimed);
  if (victim != nullptr) {
    device.narrow_window();
  }
  return victim;
}

std::uint64_t Engine::headroom(const DeviceMemory& device) const {
  return device.driver_evicts ? 0 : std::min<std::uint64_t>(settings_.headroom_blocks, device.capacity_blocks / 8);
}

// What is only predicted takes what nobody needs on the way there. Others leave for it only if the driver does not let the host run
// ahead: else the launches themselves come early enough, and what they need is certain.
bool Engine::may_take_room(const DeviceMemory& device, bool actual) const {
  const bool modest = settings_.prediction == DEEPUM_PREDICT_HISTORY && settings_.launch_queue >= kShortQueue;
  return actual || (!modest && device.reserved_blocks() == 0) ||
         device.free_blocks() + device.dead.size() > headroom(device) + device.reserved_blocks();
}

bool Engine::make_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual) {
  const std::uint64_t kept_free = headroom(device);
  if (!may_take_room(device, actual)) {
    return false;
  }
  if (device.free_blocks() <= kept_free) {
    static const std::uint64_t kB = getenv("EB") ? atoi(getenv("EB")) : 8, kO = getenv("OV") ? atoi(getenv("OV")) : 4;
    const std::uint64_t batch = device.by_next_use ? kB : kEvictionBatch;
    const std::uint64_t wanted = std::max(batch, actual ? device.wanted : 0) + kept_free;
    leaving_.clear();
    std::uint64_t spare = 0;
    const std::uint64_t most_spare = device.by_next_use ? (wanted - std::min(wanted, device.free_blocks())) * kO / 4 : 0;
    while (device.free_blocks() < wanted || spare < most_spare) {
      const bool enough = device.free_blocks() >= wanted;
      UmBlock* victim = next_victim(device, position, !enough && actual && device.free_blocks() == 0);
      if (victim == nullptr || (enough && !victim->is_expected())) {
        break;
      }
      spare += enough ? 1 : 0;
      leaving_.push_back({victim, victim->copied, victim->is_expected() ? victim->use_position : 0, victim->again});
      device.drop(*victim);
    }
    if (device.by_next_use) {
      std::stable_sort(leaving_.begin(), leaving_.end(), [](const Leaving& a, const Leaving& b) { return a.block->use_sequence < b.block->use_sequence; });
      for (; spare > 0 && !leaving_.empty() && leaving_.back().next != 0; --spare) {
        device.restore(*leaving_.back().block, leaving_.back().copied, leaving_.back().next, leaving_.back().again);
        leaving_.pop_back();
      }
    }
    for (const Leaving& leaving : leaving_) {
      leave(device, ordinal, *leaving.block, leaving.copied, position);
    }
  }
  return device.free_blocks() > (actual ? 0 : kept_free);
}

void Engine::evict(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, std::uint64_t position) {
  const bool without_copy = block.copied;
  device.drop(block);
  leave(device, ordinal, block, without_copy, position);
}

// What was dropped leaves the device.
void Engine::leave(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, bool without_copy, std::uint64_t position) {
  if (!block.populated) {
    return;  // nothing is there
  }
  if (!block.dead) {
    block.evicted_for = position;
  }
  if (discardable(block)) {
    discard(block);
    device.emptied.push_back({block.discarded, true});
    return;
  }
  note_streams(device, block);
  ++device.evictions;
  if (without_copy) {
    command(DEEPUM_COMMAND_DROP, ordinal, block, block.use_sequence, block.streams, std::max(block.moved_in, block.moved_out));
  } else {
    device.copied_away = position_;
    command(DEEPUM_COMMAND_EVICT, ordinal, block, block.use_sequence, block.streams,
            std::max(block.moved_in, block.mostly ? block.moved_out : 0), 0, block.mostly ? DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY : 0);
    forget_duplicate(block);
  }
  device.freed.push_back({block.moved_out, false});
}

void Engine::note_streams(DeviceMemory& device, const UmBlock& victim) {
  if (victim.use_sequence == 0 || victim.streams == 0) {
    return;
  }
  if (device.out_streams != 0 && (device.out_streams != victim.streams || (victim.streams & (victim.streams - 1)) != 0)) {
    device.mixed_position = position_;
  }
  device.out_streams = victim.streams;
}

}  // namespace deepum::core
