#include "placement/departures.hpp"

#include <algorithm>
#include <bit>

namespace deepum::core {
namespace {

constexpr std::uint64_t kLongPast = 4096;  // launches: more than a queue of the driver's holds

}  // namespace

Exit Departures::exit_of(const UmBlock& block) const {
  for (const TransferRule* const rule : rules_) {
    if (const std::optional<Exit> exit = rule->exit(block); exit.has_value()) {
      return *exit;
    }
  }
  return Exit::kEvict;
}

void Departures::evict(UmBlock& block, LaunchIndex for_launch) {
  const Exit exit = exit_of(block);
  devices_.of(block).drop(block);
  leave(block, exit, for_launch);
}

void Departures::collect(UmBlock& block, Exit exit) {
  leaving_.push_back({&block, exit});
  devices_.of(block).drop(block);
}

bool Departures::any_copied() const {
  return std::ranges::any_of(leaving_, [](const Leaving& each) {
    return each.exit == Exit::kEvict && !each.block->content.dead;
  });
}

// Evictions go in order: one of a block that was used last would hold up the others.
void Departures::flush(LaunchIndex for_launch) {
  if (settings_.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE) {
    std::ranges::stable_sort(leaving_, [](const Leaving& a, const Leaving& b) {
      const bool dead = a.block->content.dead;
      return dead != b.block->content.dead ? dead
                                           : a.block->moves.last_use < b.block->moves.last_use;
    });
  }
  for (const Leaving& each : leaving_) {
    leave(*each.block, each.exit, for_launch);
  }
  leaving_.clear();
}

void Departures::leave(UmBlock& block, Exit exit, LaunchIndex for_launch) {
  ResidencyBelief& residency = devices_.of(block).residency;
  residency.end_filling();
  if (!block.content.populated) {
    return;  // nothing is there
  }
  if (!block.content.dead) {
    block.uses.left_since = true;
    block.moves.evicted_for = for_launch;
  }
  const EventSequence last_use = block.moves.last_use;
  const bool discards = exit == Exit::kDiscard;
  if (discards) {
    discard(block);
    residency.give_space({block.moves.discard, true, std::max(block.content.died, last_use)});
  } else {
    note_streams(block);
    if (exit == Exit::kDrop) {
      commands_.move(DEEPUM_COMMAND_DROP, block,
                     {last_use, block.moves.streams, std::max(block.moves.in, block.moves.out)});
    } else {
      const bool duplicate = block.host_copy.read_mostly;
      const MoveId after = std::max(block.moves.in, duplicate ? block.moves.out : 0);
      commands_.move(DEEPUM_COMMAND_EVICT, block, {last_use, block.moves.streams, after},
                     duplicate ? DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY : 0);
    }
  }
  for (TransferRule* const rule : rules_) {
    rule->after_exit(block, exit);
  }
  if (!discards) {
    residency.give_space({block.moves.out, false, last_use});
  }
}

// Behind all that was launched, on whatever stream, when the block died, and behind its moves.
void Departures::discard(UmBlock& block) {
  commands_.move(DEEPUM_COMMAND_DISCARD, block,
                 {std::max(block.content.died, block.moves.last_use), used_streams_,
                  std::max(block.moves.in, block.moves.out)});
  block.content.populated = false;
}

void Departures::note_streams(const UmBlock& victim) {
  if (victim.moves.last_use == 0 || victim.moves.streams == 0) {
    return;
  }
  Streams& streams = streams_[victim.key.device];
  if (streams.latest != 0 &&
      (streams.latest != victim.moves.streams || std::popcount(victim.moves.streams) > 1)) {
    streams.mixed_at = now_.launch;
  }
  streams.latest = victim.moves.streams;
}

bool Departures::wait_for_stream_alone(std::uint32_t device, std::uint32_t stream) const {
  const Streams& streams = streams_[device];
  return streams.latest == 0 ||
         (streams.latest == 1ull << stream &&
          (streams.mixed_at == 0 || now_.launch - streams.mixed_at > kLongPast));
}

}  // namespace deepum::core
