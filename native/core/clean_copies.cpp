// Clean copies: what the device has and the host has as well leaves the device without a copy. READ_MOSTLY makes a prefetch duplicate
// instead of move, and what was written is copied out ahead of need. It stays right whatever is believed: a write collapses the duplicates,
// at the price of a fault. That faults are observed is a condition: they tell which launches write (uses.cpp).
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kSettled = 20;  // part of an iteration without a write, after which none is expected
constexpr std::uint64_t kQuiet = 8;     // part of an iteration in which nothing was copied for want of space, after which copies may go
constexpr int kCopyScan = 256;          // blocks looked at for a launch
constexpr std::uint64_t kHaste = 2;     // times the pace at which all would be copied out within an iteration

}  // namespace

bool Engine::duplicates() const { return (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && faults_are_told_ && iteration_ > 0; }

// What lives on for iterations: for what is written, read and dead within one, there is nothing to gain.
bool Engine::may_duplicate(const UmBlock& block) const {
  return duplicates() && !block.stays_away() && !block.mapped && block.sparse_uses == 0 && !block.dead && !slots_[block.slot].of_program &&
         position_ - block.filled > iteration_;
}

// The launch at hand uses them. What it writes the host has no longer.
void Engine::note_writes(std::span<const BlockSpan> spans, std::span<const Use> uses) {
  if (mostly_blocks_ == 0) {
    return;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (uses[i] != Use::kWrites) {
      continue;
    }
    Allocation& allocation = slots_[spans[i].slot];
    statistics_.operations += spans[i].count;
    for (std::uint32_t b = spans[i].first; b < spans[i].first + spans[i].count; ++b) {
      UmBlock& block = allocation.blocks[b];
      if (block.mostly) {
        end_duplication(block);
      }
    }
  }
}

// The device's copy stays.
void Engine::end_duplication(UmBlock& block) {
  const std::uint32_t ordinal = slots_[block.slot].device;
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

// The block is about to be prefetched for that use.
void Engine::prepare_duplicate(DeviceMemory& device, UmBlock& block, Use use) {
  if (block.mostly && use == Use::kWrites) {
    end_duplication(block);
  }
  if (!block.mostly && use != Use::kWrites && block.populated && may_duplicate(block) &&
      (block.written_at == 0 || position_ - block.written_at > iteration_ / kSettled)) {
    command(DEEPUM_COMMAND_ADVISE, slots_[block.slot].device, block, 0, 0, std::max(block.moved_in, block.moved_out), -1,
            DEEPUM_MEM_ADVISE_SET_READ_MOSTLY);
    set_mostly(block);
  }
  if (block.mostly && block.populated) {
    device.copy(block);
    block.copied_since = sequence_;
  }
}

// What the launch at hand may have written is to be copied out one day.
void Engine::queue_copies(std::span<const BlockSpan> spans, std::span<const Use> uses) {
  if (!duplicates()) {
    return;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    Allocation& allocation = slots_[spans[i].slot];
    DeviceMemory& device = devices_[allocation.device];
    if (uses[i] == Use::kReads || !device.under_pressure()) {
      continue;
    }
    statistics_.operations += spans[i].count;
    for (std::uint32_t b = spans[i].first; b < spans[i].first + spans[i].count; ++b) {
      UmBlock& block = allocation.blocks[b];
      block.written_at = position_;
      if (!block.to_copy && !block.copied && may_duplicate(block)) {
        block.to_copy = true;
        device.to_copy.push_back({spans[i].slot, b, position_});
      }
    }
  }
}

// Copies out what was written longest ago, no more than is evicted in an iteration, behind the launch at hand: so it goes as the program
// does, and a few blocks at a time, between which evictions find their way.
void Engine::copy_out_ahead(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t stream) {
  if (!duplicates()) {
    return;
  }
  device.count_evictions(position_, iteration_);
  if (position_ - device.copied_away < iteration_ / kQuiet) {
    return;
  }
  std::uint64_t left = 1 + kHaste * device.evicted_lately / iteration_;
  for (int i = 0; i < kCopyScan && left > 0 && !device.to_copy.empty() && device.copied_blocks < device.evicted_lately; ++i) {
    const WrittenBlock next = device.to_copy.front();
    if (position_ - next.position < iteration_ / kSettled) {
      return;
    }
    device.to_copy.pop_front();
    ++statistics_.operations;
    UmBlock& block = slots_[next.slot].blocks[next.index];
    if (block.written_at > next.position && may_duplicate(block)) {  // and again
      device.to_copy.push_back({next.slot, next.index, position_});
      continue;
    }
    block.to_copy = false;
    const bool soon_written = block.awaited > position_ && block.next_use == Use::kWrites && block.awaited < position_ + iteration_ / 2;
    if (!block.resident || block.copied || !block.populated || !may_duplicate(block) || soon_written) {
      continue;
    }
    command(DEEPUM_COMMAND_COPY_OUT, ordinal, block, sequence_, stream | block.streams, std::max(block.moved_in, block.moved_out));
    set_mostly(block);
    block.copied_since = sequence_;
    device.copy(block);
    --left;
  }
}

}  // namespace deepum::core
