// Chained prefetching and pre-eviction.
//
// The timing rule: an eviction waits for its victim's last use, a prefetch for the space its victims leave, each move of a block for
// that block's previous move. Space is taken in launch order, so a launch's blocks are never evicted by a later one before it ran.
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
constexpr std::uint64_t kEvictionBatch = 8;  // blocks evicted at once when room runs out
constexpr std::uint64_t kTrust = 2;          // launches placed ahead for each prediction in a row that was right
constexpr std::size_t kVictimScan = 4096;    // blocks looked at for one victim in the paper's order

}  // namespace

void Engine::follow(ExecutionId id) {
  context_.push(id);
  if (settings_.policy != DEEPUM_POLICY_CORRELATION) {
    return;
  }
  if (!chain_.empty()) {
    ++statistics_.predictions;
    if (chain_.front().id == id && chain_.front().generation == executions_.at(id).generation) {
      ++statistics_.predictions_right;
      ++right_in_a_row_;
      chain_.pop_front();
      placed_ -= placed_ > 0 ? 1 : 0;
      return;
    }
    ++statistics_.chain_restarts;
    chain_.clear();
    placed_ = 0;
    ++epoch_;  // what was placed ahead is no longer expected
    right_in_a_row_ = 0;
  }
  chain_context_ = context_;
}

void Engine::extend_chain() {
  for (std::uint32_t i = 0; i < settings_.chain_steps && chain_.size() < settings_.prefetch_degree; ++i) {
    if (chain_.empty()) {
      chain_context_ = context_;
    }
    const ExecutionId next = executions_.predict(chain_context_);
    ++statistics_.operations;
    if (next == kNoExecution) {
      return;
    }
    chain_.push_back({next, executions_.at(next).generation});
    chain_context_.push(next);
  }
}

void Engine::place_ahead() {
  // Trust grows with what came true: a program whose addresses change from step to step is not made to fetch its old ones.
  const std::uint64_t trusted = kTrust * right_in_a_row_;
  while (placed_ < chain_.size() && placed_ < trusted) {
    const Link& link = chain_[placed_];
    const Execution& execution = executions_.at(link.id);
    if (execution.launches < kProven) {
      return;
    }
    if (execution.generation == link.generation && !place(locate(execution.blocks.chain()), position_ + placed_ + 1, false)) {
      ++statistics_.window_stalls;
      return;
    }
    ++placed_;
  }
}

bool Engine::pending(const UmBlock& block) const { return block.use_epoch == epoch_ && block.use_position > position_; }

// The eviction list is in the order of uses, actual and placed; a launch that was placed keeps the place it got then.
void Engine::use(DeviceMemory& device, UmBlock& block, std::uint64_t position) {
  const bool was_placed = block.use_epoch == epoch_ && block.use_position >= position;
  if (was_placed) {
    return;
  }
  block.use_position = position;
  block.use_epoch = epoch_;
  if (settings_.eviction_order == DEEPUM_EVICT_OLDEST_LAST_USE) {
    device.remove(&block);
    device.append(&block);
  }
}

std::span<const BlockSpan> Engine::locate(std::span<const BlockRun> runs) {
  located_.clear();
  for (const BlockRun& run : runs) {
    const std::int64_t slot = names_.slot(run.name);
    const Allocation* allocation = slot >= 0 ? live(static_cast<std::uint32_t>(slot)) : nullptr;
    if (allocation == nullptr) {
      continue;  // freed since it was learned
    }
    const std::uint64_t first = std::uint64_t{names_.first(run.name)} + run.first;
    const std::uint64_t end = std::min<std::uint64_t>(first + run.count, allocation->blocks.size());
    if (first < end) {
      located_.push_back({static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)});
    }
  }
  return located_;
}

bool Engine::place(std::span<const BlockSpan> spans, std::uint64_t position, bool actual) {
  // First what is there is claimed, so that bringing the rest does not evict it.
  bool missing = false;
  for (const BlockSpan& span : spans) {
    Allocation& allocation = slots_[span.slot];
    DeviceMemory& device = devices_[allocation.device];
    const bool doubtful = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
    UmBlock* const blocks = allocation.blocks.data() + span.first;
    statistics_.operations += span.count;
    for (UmBlock* block = blocks; block != blocks + span.count; ++block) {
      if (!block->resident) {
        missing = missing || !block->host;
        continue;
      }
      use(device, *block, position);
      if (doubtful && position > block->confirmed + settings_.confidence_launches) {
        // Long unconfirmed: the driver may have taken it. A prefetch of what is there costs nothing.
        command(DEEPUM_COMMAND_PREFETCH, allocation.device, *block, 0, 0, block->moved_out);
        ++statistics_.reprefetches;
        block->confirmed = position;
      }
    }
  }
  if (!missing) {
    return true;
  }
  for (const BlockSpan& span : spans) {
    Allocation& allocation = slots_[span.slot];
    DeviceMemory& device = devices_[allocation.device];
    UmBlock* const blocks = allocation.blocks.data() + span.first;
    statistics_.operations += span.count;
    for (UmBlock* block = blocks; block != blocks + span.count; ++block) {
      if (!block->resident && !block->host && !bring(device, *block, position, actual)) {
        return false;
      }
    }
  }
  return true;
}

bool Engine::bring(DeviceMemory& device, UmBlock& block, std::uint64_t position, bool actual) {
  const std::uint32_t ordinal = slots_[block.slot].device;
  const bool decide = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
  if (decide && !make_room(device, ordinal, position, actual)) {
    return actual;  // a launch that does not fit runs all the same: the driver makes its room
  }
  if (!decide && device.known && device.free_blocks() == 0 && device.head != nullptr) {  // as the driver will do
    UmBlock* victim = device.head;
    device.remove(victim);
    --device.used_blocks;
    victim->resident = false;
  }
  const std::uint64_t space = device.take_space();
  block.resident = true;
  block.use_position = position;
  block.use_epoch = epoch_;
  block.confirmed = position;
  block.streams = 0;
  device.append(&block);
  statistics_.peak_resident_bytes = std::max(statistics_.peak_resident_bytes, device.used_blocks * kBlockBytes);
  if (decide) {
    command(DEEPUM_COMMAND_PREFETCH, ordinal, block, 0, 0, std::max(space, block.moved_out));
    block.populated = true;  // a prefetch populates what has no content yet
  }
  return true;
}

UmBlock* Engine::next_victim(DeviceMemory& device, std::uint64_t position, bool actual) {
  const auto mine = [&](const UmBlock& block) { return block.use_epoch == epoch_ && block.use_position == position; };
  std::size_t looked = 0;
  for (UmBlock* block = device.head; block != nullptr && looked < kVictimScan; block = block->after, ++looked) {
    ++statistics_.operations;
    if (!pending(*block) && !mine(*block)) {
      return block;
    }
    if (settings_.eviction_order == DEEPUM_EVICT_OLDEST_LAST_USE && !mine(*block)) {
      break;  // all that follow are used later still
    }
  }
  if (!actual) {
    return nullptr;
  }
  // The launch at hand goes before any that is only predicted.
  looked = 0;
  for (UmBlock* block = device.tail; block != nullptr && looked < kVictimScan; block = block->before, ++looked) {
    if (!mine(*block)) {
      return block;
    }
  }
  return nullptr;
}

bool Engine::make_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual) {
  const std::uint64_t headroom = std::min<std::uint64_t>(settings_.headroom_blocks, device.capacity_blocks / 8);
  if (device.free_blocks() <= headroom) {
    for (std::uint64_t i = 0; i < kEvictionBatch + headroom - std::min(headroom, device.free_blocks()); ++i) {
      UmBlock* victim = next_victim(device, position, actual && device.free_blocks() == 0);
      if (victim == nullptr) {
        break;
      }
      evict(device, ordinal, *victim);
    }
  }
  return device.free_blocks() > (actual ? 0 : headroom);
}

void Engine::evict(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block) {
  device.remove(&block);
  --device.used_blocks;
  block.resident = false;
  if (!block.populated) {
    return;  // nothing is there
  }
  command(DEEPUM_COMMAND_EVICT, ordinal, block, block.use_sequence, block.streams, block.moved_in);
  device.freed.push_back(block.moved_out);
}

// Gives a command for one block, or lengthens the last one of its kind if that changes nothing in what either waits for.
void Engine::command(deepum_command_kind kind, std::uint32_t ordinal, UmBlock& block, std::uint64_t after_sequence, std::uint64_t streams,
                     std::uint64_t after_move) {
  if (after_sequence == 0) {
    streams = 0;
  }
  (kind == DEEPUM_COMMAND_PREFETCH ? statistics_.bytes_prefetched : statistics_.bytes_evicted) += kBlockBytes;
  // Only commands of the same event are lengthened, so that what is decided does not depend on how events come in batches; and only
  // if it waits for nothing later than itself, or two commands would wait for each other.
  std::size_t& place = last_of_direction_[kind == DEEPUM_COMMAND_PREFETCH ? DEEPUM_DIRECTION_IN : DEEPUM_DIRECTION_OUT];
  if (place > taken_) {
    deepum_command& last = commands_[place - 1];
    if (last.cause == sequence_ && last.device == ordinal && last.slot == block.slot &&
        last.first_block + last.block_count == block.index && last.block_count < kMostCommandBlocks &&
        last.after_sequence == after_sequence && last.stream_mask == streams && after_move < last.id) {
      ++last.block_count;
      last.after_move = std::max(last.after_move, after_move);
      given_[last.id % kRemembered].block_count = last.block_count;
      (kind == DEEPUM_COMMAND_PREFETCH ? block.moved_in : block.moved_out) = last.id;
      return;
    }
  }
  deepum_command made{};
  made.id = ++last_id_;
  made.cause = sequence_;
  made.after_sequence = after_sequence;
  made.stream_mask = streams;
  made.after_move = after_move;
  made.slot = block.slot;
  made.generation = slots_[block.slot].generation;
  made.first_block = block.index;
  made.block_count = 1;
  made.kind = static_cast<std::uint8_t>(kind);
  made.device = static_cast<std::uint16_t>(ordinal);
  commands_.push_back(made);
  place = commands_.size();
  given_[made.id % kRemembered] = made;
  (kind == DEEPUM_COMMAND_PREFETCH ? block.moved_in : block.moved_out) = made.id;
  ++statistics_.commands;
}

}  // namespace deepum::core
