// Placement: a launch's blocks are made resident, at hand or ahead.
//
// The timing rule: an eviction waits for its victim's last use, a prefetch for the space its victims leave, each move of a block for
// that block's previous move. Space is taken in launch order, so a launch's blocks are never evicted by a later one before it ran.
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kLongPast = 4096;  // launches: more than a queue of the driver's holds
constexpr std::uint64_t kLeastDoubt = 16;  // launches for which what is known to be there is not doubted
constexpr std::uint64_t kDoubtShare = 24;  // of what is fetched, the part that is asked for again where it is believed to be, at most
constexpr std::uint64_t kFreeDoubts = 5;   // and besides, as many times as much as is on the device

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
      located_uses_.push_back({blocks.uses()[i].now, blocks.uses()[i].leaves()});
    }
  }
  return located_;
}

bool Engine::place(std::span<const BlockSpan> spans, std::span<const SpanUse> uses, std::uint64_t position, bool actual) {
  ++claim_;
  // First what is there is claimed, so that bringing the rest does not evict it.
  bool missing = false;
  for (DeviceMemory& device : devices_in_use()) {
    device.wanted = 0;
  }
  for (const BlockSpan& span : spans) {
    Allocation& allocation = slots_[span.slot];
    DeviceMemory& device = devices_[allocation.device];
    const bool may_doubt = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
    UmBlock* const blocks = allocation.blocks.data() + span.first;
    statistics_.operations += span.count;
    for (UmBlock* block = blocks; block != blocks + span.count; ++block) {
      if (!block->resident) {
        const bool away = block->stays_away() || passes_over(*block);
        missing = missing || !away;
        device.wanted += away ? 0 : 1;
        continue;
      }
      if (passes_over(*block)) {
        block->claim = claim_;
      } else {
        use(device, *block, position, actual);
      }
      if (may_doubt && doubts(device, *block)) {
        // Long unconfirmed: the driver may have taken it. A prefetch of what is there need not wait for a copy of it.
        // What is to be populated may not be there yet: before there is space for it, it would take another's.
        command(block->populates ? DEEPUM_COMMAND_POPULATE : DEEPUM_COMMAND_PREFETCH, allocation.device, *block, 0, 0,
                block->stayed ? 0 : block->moved_out);
        statistics_.bytes_prefetched -= kBlockBytes;
        statistics_.bytes_prefetched_again += kBlockBytes;
        block->confirmed = position_;
        block->confirmed_after = device.fetches;
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
      if (!block->resident && !block->stays_away() && !passes_over(*block) && !bring(device, *block, uses[i], position, actual)) {
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

// What is there already is asked for seldom: in a decoding loop almost all of memory stays where it is, and thousands of commands that move
// nothing take time as well. So a block is doubted no sooner than kDoubtShare times as much as is on the device was fetched since it was
// known to be there; but at once beside a fault, and never where it is as good on the host. While a program is learned its launches fault
// and the driver makes room as it likes: so kFreeDoubts times as much as is on the device is asked for again, each block an iteration after
// it was confirmed. Without pre-eviction a prefetch of what is there has another purpose: it renews its place in the driver's order.
bool Engine::doubts(DeviceMemory& device, const UmBlock& block) {
  if (block.stays_away() || position_ <= block.confirmed + doubt_after_) {
    return false;
  }
  if (device.driver_evicts || block.confirmed == 0 || device.fetches - block.confirmed_after >= kDoubtShare * device.used_blocks) {
    return true;
  }
  if (device.freely_doubted >= kFreeDoubts * device.used_blocks) {
    return false;
  }
  ++device.freely_doubted;
  return true;
}

bool Engine::bring(DeviceMemory& device, UmBlock& block, SpanUse use_for, std::uint64_t position, bool actual) {
  const std::uint32_t ordinal = slots_[block.slot].device;
  const bool decide = settings_.policy == DEEPUM_POLICY_CORRELATION && device.under_pressure();
  if (decide && !actual && device.ahead_blocks() >= device.window()) {
    device.window_full = true;
    return false;
  }
  const UmBlock* outgoing = nullptr;
  const bool fetches = block.populated;
  if (decide && !(device.driver_evicts ? yield_room(device, ordinal, position, actual, outgoing)
                                       : make_room(device, ordinal, position, actual, fetches))) {
    return actual;  // a launch that does not fit runs all the same: the driver makes its room
  }
  if (!decide && device.known && device.free_blocks() == 0) {  // as the driver will do
    if (UmBlock* first = device.kept.find(1, [](const UmBlock&) { return true; }); first != nullptr) {
      end_filling(device);
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
  const Space space = device.take_space(fetches);
  device.commanded += decide ? 1 : 0;
  device.wanted -= std::min<std::uint64_t>(device.wanted, 1);
  device.add(block);
  block.used_after = device.migrations;
  use(device, block, position, actual);
  block.first_use = 0;
  block.fetched = !actual;
  device.fetched_blocks += actual ? 0 : 1;
  device.fetches += decide && fetches ? 1 : 0;
  block.confirmed = position_;
  block.confirmed_after = device.fetches;
  block.streams = 0;
  statistics_.peak_resident_bytes = std::max(statistics_.peak_resident_bytes, device.used_blocks * kBlockBytes);
  if (decide) {
    // The driver evicts in the order of what comes, which is that of commands of one direction only.
    const deepum_command_kind kind = fetches || device.driver_evicts ? DEEPUM_COMMAND_PREFETCH : DEEPUM_COMMAND_POPULATE;
    await_move(device, ordinal, kind, std::max(block.discarded, space.discard ? space.id : 0));
    const std::uint64_t freed = space.discard ? 0 : space.id;
    if (direction_of(freed) != direction_of(block.moved_out)) {
      await_move(device, ordinal, kind, std::min(freed, block.moved_out));
    }
    command(kind, ordinal, block, outgoing != nullptr ? outgoing->use_sequence : 0, outgoing != nullptr ? outgoing->streams : 0,
            std::max(block.moved_out, freed));
    block.brought = block.moved_in;
    block.populated = true;  // a prefetch populates what has no content yet
  }
  return true;
}

// A launch that starts before its prefetches are done faults on what they are about to bring, at several times the cost, and the driver
// makes room for it by evicting what it likes, behind the belief's back. So it is held back until they are done. What a prefetch
// waits for was launched before; still a program may let a stream wait for what it does later (a value that it writes), so it is told
// whether evictions wait for launches of other streams than its own.
void Engine::hold(std::span<const BlockSpan> spans, std::uint32_t stream) {
  if (settings_.policy != DEEPUM_POLICY_CORRELATION) {
    return;
  }
  std::array<std::array<std::uint64_t, 2>, DEEPUM_MAX_DEVICES> until{};  // prefetches, populations
  for (const BlockSpan& span : spans) {
    const Allocation& allocation = slots_[span.slot];
    for (std::uint32_t i = span.first; i < span.first + span.count; ++i) {
      const UmBlock& block = allocation.blocks[i];
      std::uint64_t& latest = until[allocation.device][block.populates ? 1 : 0];
      latest = std::max(latest, block.brought);
    }
  }
  for (std::uint32_t ordinal = 0; ordinal < devices_in_use_; ++ordinal) {
    DeviceMemory& device = devices_[ordinal];
    const bool own = device.out_streams == 0 || (device.out_streams == 1ull << stream &&
                                                 (device.mixed_position == 0 || position_ - device.mixed_position > kLongPast));
    for (std::size_t i = 0; i < until[ordinal].size(); ++i) {
      std::uint64_t& held = device.held[stream][i];
      if (until[ordinal][i] <= held) {
        continue;
      }
      held = until[ordinal][i];
      deepum_command made{};
      made.id = ++last_id_;
      made.cause = sequence_;
      made.stream_mask = 1ull << stream;
      made.after_move = held;
      made.kind = DEEPUM_COMMAND_HOLD;
      made.advice = own ? 0 : DEEPUM_HOLD_BEHIND_OTHERS;
      made.device = static_cast<std::uint16_t>(ordinal);
      commands_.push_back(made);
      ++statistics_.holds;
    }
  }
}

}  // namespace deepum::core
