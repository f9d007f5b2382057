// Victims: which blocks leave when there is no room, and the moves that take them away.
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kEvictionBatch = 8;  // blocks evicted at once when room runs out
constexpr std::size_t kVictimScan = 4096;    // blocks looked at for one victim,
constexpr std::size_t kExpectedScan = 256;   // and of those that are expected
constexpr std::size_t kSoon = 64;            // launches that are looked at for new content,
constexpr std::uint64_t kSoonShare = 64;     // and part of the device that is kept for it
constexpr std::uint64_t kRested = 32;        // blocks brought since a last use, so that the space comes in time: 64 MiB, milliseconds
constexpr std::uint64_t kFar = 8;            // part of an iteration, after which what left comes back in time
constexpr std::uint64_t kIdle = 64;          // part of an iteration, and
constexpr std::uint64_t kLeastIdle = 2;      // launches, in which nothing left for want of space, after which the link has time

// Of what nobody is known to need, the first in order: what leaves without a copy is not preferred, unless the order says so.
template <typename Wanted>
UmBlock* first_kept(const DeviceMemory& device, bool clean_first, std::uint64_t until, Wanted wanted) {
  if (clean_first) {
    UmBlock* const far = device.copied.find(kVictimScan, [&](const UmBlock& block) {
      return wanted(block) && (block.awaited == 0 || block.next_use == Use::kDies || block.awaited > until);
    });
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

// For the placement of launch number `position`. Dead blocks go first; by next use then what is needed last, in the other orders what no
// launch is expected to use, and after that what launches not placed yet expect, the farthest first, unless it was used so lately that its
// space would come late. `any`: the launch at hand has nowhere else to go, so that it takes what others expect. `dead`: these may go.
UmBlock* Engine::next_victim(DeviceMemory& device, std::uint64_t position, bool any, bool dead) {
  const auto unclaimed = [&](const UmBlock& block) {
    ++statistics_.operations;
    return block.claim != claim_;
  };
  device.wake(position_, iteration_);
  for (UmBlock* block = dead ? device.dead.head() : nullptr; block != nullptr; block = block->after) {
    if (unclaimed(*block)) {
      return block;
    }
  }
  UmBlock* const kept = first_kept(device, settings_.eviction_order == DEEPUM_EVICT_CLEAN_FIRST, position_ + iteration_ / kFar, unclaimed);
  if (device.by_next_use) {
    return needed_last(device, position, kept, any);
  }
  if (kept != nullptr) {
    return kept;
  }
  const auto rested = [&](const UmBlock& block) {
    return unclaimed(block) && !block.fetched && device.migrations - block.used_after >= kRested;
  };
  if (UmBlock* victim = device.expected.find_beyond(std::max(position, position_ + promised_), kExpectedScan, rested);
      victim != nullptr || !any) {
    return victim;
  }
  UmBlock* victim = device.expected.find_beyond(0, kVictimScan, unclaimed);
  if (victim != nullptr) {
    device.narrow_window();
  }
  return victim;
}

// By next use: what is needed last, and what leaves without a copy before all else, if it has the time to come back. `kept`: the first of
// those whose next use is unknown, which goes if it was used longer ago, so that its space is free no later. What was used just now goes
// only where nothing else is left.
UmBlock* Engine::needed_last(DeviceMemory& device, std::uint64_t position, UmBlock* kept, bool any) {
  const auto farthest = [&](std::uint64_t beyond, std::size_t most, auto wanted) {
    UmBlock* const moved = device.expected.find_beyond(beyond, most, wanted);
    UmBlock* const dropped = device.expected_copied.find_beyond(beyond, most, wanted);
    const bool far = dropped != nullptr && dropped->use_position >= position_ + iteration_ / kFar;
    return moved == nullptr || far ? dropped : moved;
  };
  const auto unclaimed = [&](const UmBlock& block) {
    ++statistics_.operations;
    return block.claim != claim_;
  };
  UmBlock* victim = farthest(std::max(position, position_ + promised_), kExpectedScan,
                             [&](const UmBlock& block) { return unclaimed(block) && !block.fetched; });
  if (victim == nullptr || (kept != nullptr && !victim->copied && kept->used <= victim->used)) {
    victim = kept;
  }
  if (victim != nullptr || !any) {
    return victim;
  }
  // What the launch at hand uses itself rests behind all others.
  if (UmBlock* const oldest = device.resting.head(); oldest != nullptr && unclaimed(*oldest)) {
    return oldest;
  }
  victim = farthest(0, kVictimScan, unclaimed);
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

// `fetches`: for content, else for what is only populated.
bool Engine::make_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual, bool fetches) {
  if (fetching_ahead_) {
    return spare_room(device, ordinal, position);
  }
  const std::uint64_t kept_free = headroom(device);
  if (!may_take_room(device, actual)) {
    return false;
  }
  if (device.by_next_use && device.free_blocks() > kept_free && device.only_freed() && !(fetches && keeps_dead(device, ordinal))) {
    discard_dead(device, ordinal, position);
  }
  if (device.free_blocks() <= kept_free) {
    const std::uint64_t batch = device.by_next_use && actual ? std::max(kEvictionBatch, device.wanted) : kEvictionBatch;
    leaving_.clear();
    while (device.free_blocks() < batch + kept_free) {
      const bool any = actual && device.free_blocks() == 0;
      UmBlock* victim = fetches && keeps_dead(device, ordinal) ? next_victim(device, position, false, false) : nullptr;
      victim = victim != nullptr ? victim : next_victim(device, position, any, true);
      if (victim == nullptr) {
        break;
      }
      draw_back(*victim);
      leaving_.push_back({victim, victim->copied});
      device.drop(*victim);
    }
    if (device.by_next_use &&
        std::any_of(leaving_.begin(), leaving_.end(), [](const Leaving& each) { return !each.block->dead && !each.copied; })) {
      device.demanded = position_;
    }
    leave_in_order(device, ordinal, position);
  }
  return device.free_blocks() > (actual ? 0 : kept_free);
}

// Whether what died last stays for new content that will soon come into being: that needs no link, so that space which comes late is in
// time for it, while what is fetched takes the space of what leaves, which was used longer ago. In the end as much leaves, only sooner.
bool Engine::keeps_dead(DeviceMemory& device, std::uint32_t ordinal) {
  if (!device.by_next_use || settings_.prediction != DEEPUM_PREDICT_HISTORY || device.dead.size() == 0) {
    return false;
  }
  foresee_growth(device, ordinal);
  return device.dead.size() <= std::min(static_cast<std::uint64_t>(device.soon), device.capacity_blocks / kSoonShare);
}

void Engine::foresee_growth(DeviceMemory& device, std::uint32_t ordinal) {
  if (device.foreseen_at == position_) {
    return;
  }
  device.foreseen_at = position_;
  device.soon = 0;
  std::int64_t content = 0;
  for (std::size_t i = 0; i < std::min(chain_.size(), kSoon); ++i, ++statistics_.operations) {
    if (!history_.holds(chain_[i].place) || history_.at(chain_[i].place).device != ordinal) {
      continue;
    }
    content += history_.at(chain_[i].place).growth;
    device.soon = std::max(device.soon, content);
  }
}

// Evictions go in order: what was used last would hold up the others.
void Engine::leave_in_order(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position) {
  if (device.by_next_use) {
    std::stable_sort(leaving_.begin(), leaving_.end(), [](const Leaving& a, const Leaving& b) {
      return a.block->dead != b.block->dead ? a.block->dead : a.block->use_sequence < b.block->use_sequence;
    });
  }
  for (const Leaving& leaving : leaving_) {
    leave(device, ordinal, *leaving.block, leaving.copied, position);
  }
}

// What the dead have is free earlier than what evictions to come leave.
void Engine::discard_dead(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position) {
  UmBlock* block = device.dead.head();
  for (std::uint64_t left = kEvictionBatch; block != nullptr && left > 0; ++statistics_.operations) {
    UmBlock* const next = block->after;
    if (block->claim != claim_) {
      evict(device, ordinal, *block, position);
      --left;
    }
    block = next;
  }
}

// While the link is idle, before content grows: what is needed only when there will be the most of it, and left in the same place last
// time, leaves now. Once it is in the way its copy would be late. Of that, what was used longest ago: evictions go in order, and one that
// waits for a launch which the GPU has not come to holds up those behind it.
void Engine::leave_ahead(DeviceMemory& device, std::uint32_t ordinal) {
  const std::uint64_t idle = std::max(iteration_ / kIdle, kLeastIdle);
  if (device.reserved_blocks() == 0 || position_ - device.demanded < idle || device.driver_evicts) {
    return;
  }
  const std::uint64_t needed = device.reserved_blocks() + headroom(device), available = device.free_blocks() + device.dead.size();
  if (available >= needed) {
    return;
  }
  device.wake(position_, iteration_);
  leaving_.clear();
  device.expected.for_each_beyond(std::max(fullest_, position_), kExpectedScan, [&](UmBlock& block) {
    ++statistics_.operations;
    if (block.fetched || (block.next_use == Use::kDies && block.awaited > position_)) {
      return;
    }
    if (const RunUse* const run = use_by(block.user); run != nullptr && run->next[static_cast<std::size_t>(block.user.part)].left) {
      leaving_.push_back({&block, block.copied});
    }
  });
  std::stable_sort(leaving_.begin(), leaving_.end(), [](const Leaving& a, const Leaving& b) { return a.block->used < b.block->used; });
  leaving_.resize(std::min<std::size_t>({leaving_.size(), kEvictionBatch, needed - available}));
  for (const Leaving& leaving : leaving_) {
    device.drop(*leaving.block);
  }
  leave_in_order(device, ordinal, position_);
}

void Engine::evict(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, std::uint64_t position) {
  const bool without_copy = block.copied;
  device.drop(block);
  leave(device, ordinal, block, without_copy, position);
}

// Discards that came to nothing had their space given to others: somebody has to leave for them, or the driver chooses.
void Engine::evict_surplus(DeviceMemory& device, std::uint32_t ordinal) {
  while (device.used_blocks > device.capacity_blocks && !device.driver_evicts) {
    UmBlock* const victim = next_victim(device, position_, false, true);
    if (victim == nullptr) {
      return;
    }
    draw_back(*victim);
    evict(device, ordinal, *victim, position_);
  }
}

// What was dropped leaves the device.
void Engine::leave(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, bool without_copy, std::uint64_t position) {
  end_filling(device);
  if (!block.populated) {
    return;  // nothing is there
  }
  if (!block.dead) {
    block.left = true;
    block.evicted_for = position;
  }
  if (discardable(block)) {
    discard(block);
    device.emptied.push_back({block.discarded, true, std::max(block.died, block.use_sequence)});
    return;
  }
  note_streams(device, block);
  ++device.evictions;
  if (without_copy) {
    judge_copy(block, true);
    command(DEEPUM_COMMAND_DROP, ordinal, block, block.use_sequence, block.streams, std::max(block.moved_in, block.moved_out));
  } else {
    device.copied_away = position_;
    command(DEEPUM_COMMAND_EVICT, ordinal, block, block.use_sequence, block.streams,
            std::max(block.moved_in, block.mostly ? block.moved_out : 0), 0, block.mostly ? DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY : 0);
    forget_duplicate(block);
  }
  device.freed.push_back({block.moved_out, false, block.use_sequence});
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
