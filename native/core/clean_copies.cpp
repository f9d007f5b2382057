// Clean copies: what the device has and the host has as well leaves the device without a copy. READ_MOSTLY makes a prefetch duplicate
// instead of move, and what was written is copied out ahead of need. It stays right whatever is believed: a write collapses the duplicates,
// at the price of a fault. That faults are observed is a condition: they tell which launches write (uses.cpp).
#include <algorithm>
#include <utility>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kSettled = 20;  // part of an iteration without a write, after which none is expected
constexpr std::uint64_t kQuiet = 8;     // part of an iteration in which nothing was copied for want of space, after which copies may go
constexpr int kCopyScan = 256;          // blocks looked at for a launch
constexpr std::uint64_t kHaste = 2;     // times the pace at which what has settled would be copied out within an iteration
constexpr std::uint64_t kLasting = 32;  // part of what is touched in an iteration, before what is copied out at once is used again
constexpr std::uint32_t kVain = 64;     // copies ahead that were made in vain, counted up to there

}  // namespace

bool Engine::may_ever_duplicate() const { return (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && faults_are_told_; }

bool Engine::duplicates() const { return may_ever_duplicate() && iteration_ > 0 && pace_.on(); }

bool Engine::may_duplicate(const UmBlock& block) const {
  return duplicates() && !block.stays_away() && !block.mapped && block.sparse_uses == 0 && !block.dead && !slots_[block.slot].of_program;
}

// The launch at hand uses them. What it writes the host has no longer.
void Engine::note_writes(std::span<const BlockSpan> spans, std::span<const SpanUse> uses) {
  if (mostly_blocks_ == 0) {
    return;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (uses[i].now != Use::kWrites) {
      continue;
    }
    Allocation& allocation = slots_[spans[i].slot];
    const std::span<UmBlock> blocks(allocation.blocks.data() + spans[i].first, spans[i].count);
    statistics_.operations += 2 * blocks.size();
    std::uint64_t copy = 0;
    for (const UmBlock& block : blocks) {
      copy = block.mostly ? std::max(copy, copy_to_come(block)) : copy;
    }
    await_move(devices_[allocation.device], allocation.device, DEEPUM_COMMAND_COLLAPSE, copy, DEEPUM_DIRECTION_COPY);
    for (UmBlock& block : blocks) {
      if (block.mostly) {
        end_duplication(block);
      }
    }
  }
}

// Done before a copy to the host that is still to be made, the end of a duplication would be undone by it: a prefetch of what is there does
// not wait for such. 0: what waits for the latest move of it waits for that, too.
std::uint64_t Engine::copy_to_come(const UmBlock& block) { return block.stayed && block.moved_out < block.moved_in ? block.moved_out : 0; }

// The device's copy stays.
void Engine::end_duplication(UmBlock& block) {
  const std::uint32_t ordinal = slots_[block.slot].device;
  await_move(devices_[ordinal], ordinal, DEEPUM_COMMAND_COLLAPSE, copy_to_come(block), DEEPUM_DIRECTION_COPY);
  command(DEEPUM_COMMAND_COLLAPSE, ordinal, block, 0, 0, std::max(block.moved_in, block.moved_out));
  forget_duplicate(block);
}

void Engine::set_mostly(UmBlock& block) {
  mostly_blocks_ += block.mostly ? 0 : 1;
  block.mostly = true;
}

void Engine::forget_duplicate(UmBlock& block) {
  mostly_blocks_ -= block.mostly ? 1 : 0;
  block.mostly = false;
  block.single_since = sequence_;
  devices_[slots_[block.slot].device].uncopy(block);
}

// The block is about to be prefetched for that use. It pays for what lives on for iterations, or is known to leave before it is written
// again, but not for what came into being just now, which the launch at hand writes. Advice goes in order with the prefetches: none is
// given that would wait for a copy still to be made, behind launches still to run.
void Engine::prepare_duplicate(DeviceMemory& device, UmBlock& block, SpanUse use) {
  if (block.mostly && (use.now == Use::kWrites || !pace_.on())) {
    end_duplication(block);
  }
  const std::uint64_t lived = position_ - block.filled;
  const bool settled = lived > iteration_ && (block.written_at == 0 || position_ - block.written_at > iteration_ / kSettled);
  const bool waits = direction_of(block.moved_in) == DEEPUM_DIRECTION_COLLAPSE || direction_of(block.moved_out) == DEEPUM_DIRECTION_COPY;
  if (!pace_.on() && settled && !block.to_copy && use.now != Use::kWrites && block.populated) {
    block.to_copy = true;  // if copies turn out to be worth it
    device.to_settle.push_back({block.slot, block.index, position_});
  }
  if (!block.mostly && !waits && use.now != Use::kWrites && block.populated && (settled || (use.leaves && lived > 0)) &&
      may_duplicate(block)) {
    command(DEEPUM_COMMAND_ADVISE, slots_[block.slot].device, block, 0, 0, std::max(block.moved_in, block.moved_out), -1,
            DEEPUM_MEM_ADVISE_SET_READ_MOSTLY);
    set_mostly(block);
  }
  if (block.mostly && block.populated) {
    device.copy(block);
    block.copied_since = sequence_;
  }
}

// What is copied out ahead of need: at once what stays for long, is used then, and leaves before it is written again. How long is told by
// what launches touch: an optimizer has a hundredth of a training step's launches, and a fifth of its time;
bool Engine::pays_at_once(const BlockUser& writer) {
  const RunUse* const run = use_by(writer);
  return run != nullptr && run->in_vain == 0 && run->stays_first(std::max<std::uint64_t>(touched_lately_ / kLasting, 1));
}

// and once it has settled, what lives on for iterations: for what is written, read and dead within one, there is else nothing to gain.
bool Engine::pays_once_settled(const UmBlock& block) {
  const RunUse* const run = use_by(block.writer);
  return position_ - block.filled > iteration_ && (run == nullptr || run->in_vain == 0);
}

// If the block was copied out ahead, it now left without a copy, or was written before it did. What leaves in one iteration and stays in
// the next would be copied in vain each time.
void Engine::judge_copy(UmBlock& block, bool left) {
  if (!std::exchange(block.copied_ahead, false)) {
    return;
  }
  if (RunUse* const run = use_by(block.writer); run != nullptr && pace_.representative()) {
    run->in_vain = left ? run->in_vain - std::min(run->in_vain, 1u) : std::min(run->in_vain + 1, kVain);
  }
}

// What the launch at hand may have written is to be copied out one day; at once only what it did write.
void Engine::queue_copies(std::span<const BlockSpan> spans, std::span<const SpanUse> uses) {
  if (!duplicates()) {
    return;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    Allocation& allocation = slots_[spans[i].slot];
    DeviceMemory& device = devices_[allocation.device];
    if (uses[i].now == Use::kReads || !device.under_pressure()) {
      continue;
    }
    statistics_.operations += spans[i].count;
    const bool wrote = uses[i].now == Use::kWrites || uses[i].creates;
    const bool pays = wrote && uses[i].leaves && pays_at_once(allocation.blocks[spans[i].first + spans[i].count / 2].writer);
    for (std::uint32_t b = spans[i].first; b < spans[i].first + spans[i].count; ++b) {
      UmBlock& block = allocation.blocks[b];
      block.written_at = position_;
      if (!block.to_copy && !block.copied && may_duplicate(block) && (pays || pays_once_settled(block))) {
        block.to_copy = true;
        (pays ? device.to_copy : device.to_settle).push_back({spans[i].slot, b, position_});
      }
    }
  }
}

// Copies out what was written longest ago, no more than is evicted in an iteration, behind the launch at hand: so it goes as the program
// does, and what has settled a few blocks at a time, between which evictions find their way.
void Engine::copy_out_ahead(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t stream) {
  if (!duplicates()) {
    return;
  }
  device.count_evictions(position_, iteration_);
  if (position_ - device.copied_away < iteration_ / kQuiet) {
    return;
  }
  std::uint64_t left = 1 + kHaste * device.evicted_lately / iteration_;
  for (std::deque<WrittenBlock>* const queue : {&device.to_copy, &device.to_settle}) {
    const bool at_once = queue == &device.to_copy;
    for (int i = 0; i < kCopyScan && (at_once || left > 0) && !queue->empty() && device.copied_blocks < device.evicted_lately; ++i) {
      const WrittenBlock next = queue->front();
      if (!at_once && position_ - next.position < iteration_ / kSettled) {
        break;
      }
      queue->pop_front();
      ++statistics_.operations;
      UmBlock& block = slots_[next.slot].blocks[next.index];
      if (!at_once && block.written_at > next.position && may_duplicate(block) && pays_once_settled(block)) {  // and again
        queue->push_back({next.slot, next.index, position_});
        continue;
      }
      block.to_copy = false;
      const bool soon_written = block.awaited > position_ && block.next_use == Use::kWrites && block.awaited < position_ + iteration_ / 2;
      if (!block.resident || block.copied || !block.populated || !may_duplicate(block) || soon_written ||
          !(at_once ? pays_at_once(block.writer) : pays_once_settled(block))) {
        continue;
      }
      command(DEEPUM_COMMAND_COPY_OUT, ordinal, block, sequence_, stream | block.streams, std::max(block.moved_in, block.moved_out));
      set_mostly(block);
      block.copied_since = sequence_;
      block.copied_ahead = true;
      device.copy(block);
      left -= at_once ? 0 : 1;
    }
  }
}

}  // namespace deepum::core
