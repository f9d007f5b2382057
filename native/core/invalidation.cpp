// Dead blocks: UM blocks all of which is inactive PyTorch memory. Nobody reads their content again before writing it, so that it is dropped
// where others would be copied (DeepUM, section 5.2). What is dropped is proposed here; the mover, who knows what is active by then,
// commits.
#include <algorithm>
#include <iterator>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kShortestPause = 64, kLongestPause = 1ull << 20;  // launches without discards after one that was not carried out

}  // namespace

// PyTorch took [offset, offset + bytes) of the allocation back.
void Engine::mark_dead(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes) {
  // The inactive stretch around it: it may complete UM blocks that it shares with others.
  std::uint64_t from = 0, to = allocation.bytes;
  const auto after = allocation.active.lower_bound(offset);
  if (after != allocation.active.end()) {
    to = after->first;
  }
  if (after != allocation.active.begin()) {
    const auto before = std::prev(after);
    from = before->first + before->second.bytes;
  }
  const std::uint64_t origin = allocation.first_offset;
  const std::uint64_t first = std::max((from + origin + kBlockBytes - 1) / kBlockBytes, (offset + origin) / kBlockBytes);
  const std::uint64_t end = std::min((to + origin) / kBlockBytes, (offset + bytes + origin + kBlockBytes - 1) / kBlockBytes);
  DeviceMemory& device = devices_[allocation.device];
  for (std::uint64_t i = first; i < end; ++i) {
    UmBlock& block = allocation.blocks[i];
    device.grown -= !block.fresh && !block.dead ? 1 : 0;
    device.died_away += !block.fresh && !block.dead && !block.resident ? 1 : 0;
    block.dead = true;
    block.died = sequence_;
    device.uncopy(block);
    learn_next(block, {Use::kDies, false, false});
    block.user = {};
    block.awaited = 0;
    if (block.resident) {
      block.again = 0;  // whoever expected it meant what died
      if (drops_dead()) {
        device.put(block, BlockPlace::kDead, block.use_position);
      } else if (block.place == BlockPlace::kExpected) {
        device.put(block, BlockPlace::kKept, block.use_position);
      }
    } else if (block.populated && discardable(block)) {
      discard(block);  // what the host holds would be copied when the place is used again
    }
  }
  statistics_.operations += end > first ? end - first : 0;
}

void Engine::mark_alive(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes) {
  DeviceMemory& device = devices_[allocation.device];
  const std::uint64_t end = (offset + bytes + allocation.first_offset + kBlockBytes - 1) / kBlockBytes;
  for (std::uint64_t i = (offset + allocation.first_offset) / kBlockBytes; i < end; ++i) {
    UmBlock& block = allocation.blocks[i];
    if (block.dead) {
      device.grown += block.resident ? 1 : 0;
      block.fresh = !block.resident;
      block.filled = position_;
    }
    block.written_at = position_;  // what comes will be written
    if (block.mostly) {
      end_duplication(block);
    }
    block.dead = false;
    forget_sparse_uses(block);
    if (block.resident && block.place == BlockPlace::kDead) {
      device.spare(block, position_);
    }
  }
}

// A graph's launches use memory that looks inactive, and reports that do not add up say that somebody else's do too.
bool Engine::discardable(const UmBlock& block) const {
  const Allocation& allocation = slots_[block.slot];
  return block.dead && drops_dead() && settings_.policy == DEEPUM_POLICY_CORRELATION && !graphs_ && position_ >= discards_from_ &&
         statistics_.block_mismatches == 0 && !allocation.of_program && devices_[allocation.device].under_pressure();
}

// Behind all that was launched, on whatever stream, when the block died, and behind its moves.
void Engine::discard(UmBlock& block) {
  command(DEEPUM_COMMAND_DISCARD, slots_[block.slot].device, block, std::max(block.died, block.use_sequence), used_streams_,
          std::max(block.moved_in, block.moved_out));
  block.populated = false;
}

// Dead blocks are victims like all others from now on, and are copied.
void Engine::stop_discarding() {
  discards_refused_ = true;
  for (DeviceMemory& device : devices_) {
    while (UmBlock* const block = device.dead.head()) {
      device.put(*block, BlockPlace::kKept, block->use_position);
    }
  }
}

// The content of a dead block was to be dropped and is still there, so that it has to be copied. Another discard would most likely fail as
// well: each failure in a row doubles the pause before the next attempt.
void Engine::pause_discarding() {
  if (position_ < discards_from_) {
    return;  // it was decided before the pause began
  }
  const bool in_a_row = discard_pause_ != 0 && position_ - discards_from_ < discard_pause_;
  discard_pause_ = in_a_row ? std::min(2 * discard_pause_, kLongestPause) : kShortestPause;
  discards_from_ = position_ + discard_pause_;
}

}  // namespace deepum::core
