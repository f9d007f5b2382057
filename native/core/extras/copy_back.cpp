#include "extras/copy_back.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {

bool CopyBack::may_ever_duplicate() const {
  return (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && trials_.observed() &&
         (settings_.writes == DEEPUM_WRITES_BY_FAULTS || reads_known_);
}

// Where reads are declared and nobody declares any, all uses count as writes: copies ahead of need
// would save none.
void CopyBack::note_reads(std::span<const Access> accesses) {
  reads_known_ = reads_known_ || std::ranges::any_of(accesses, [](const Access& access) {
                   return access.use.now == Use::kReads;
                 });
}

bool CopyBack::duplicates() const {
  return may_ever_duplicate() && now_.iteration > 0 && pace_.on();
}

bool CopyBack::may_duplicate(const UmBlock& block) const {
  return duplicates() && !block.on_host.stays() && !block.on_host.mapped &&
         block.on_host.sparse_uses == 0 && !block.content.dead && !block.key.of_program;
}

void CopyBack::content_died(UmBlock& block, bool) { lose_host_copy(block); }

void CopyBack::content_begins(UmBlock& block) {
  block.host_copy.written = now_.launch;  // what comes will be written
  if (block.host_copy.read_mostly) {
    end_duplication(block);
  }
}

void CopyBack::memory_gone(Allocation& allocation) {
  WriteBack& queued = queued_[allocation.device];
  if (std::ranges::any_of(allocation.blocks,
                          [](const UmBlock& block) { return block.host_copy.queued; })) {
    for (std::deque<Written>* const each : {&queued.at_once, &queued.once_settled}) {
      std::erase_if(*each, [&](const Written& written) {
        return written.slot == allocation.blocks.front().key.slot;
      });
    }
  }
  for (const UmBlock& block : allocation.blocks) {
    read_mostly_blocks_ -= block.host_copy.read_mostly ? 1 : 0;
  }
}

void CopyBack::events_lost() {
  pace_.forget();
  for (WriteBack& queued : queued_) {
    queued.at_once.clear();
    queued.once_settled.clear();
  }
}

void CopyBack::launched() {
  if (may_ever_duplicate()) {
    pace_.launched(now_.launch, now_.event, now_.iteration,
                   statistics_.bytes_copied_out + statistics_.bytes_dropped);
  }
}

void CopyBack::before(std::span<const Access> accesses) {
  if (!duplicates() && read_mostly_blocks_ == 0) {
    return;
  }
  for (const Access& access : accesses) {
    if (access.use.now != Use::kWrites) {
      continue;
    }
    const std::span<UmBlock> blocks = memory_.blocks(access.span);
    statistics_.operations += 2 * blocks.size();
    MoveId copy = 0;
    for (UmBlock& block : blocks) {
      block.host_copy.written = now_.launch;
      copy = block.host_copy.read_mostly ? std::max(copy, write_back_to_come(block)) : copy;
    }
    commands_.fence(blocks.front().key.device, DEEPUM_COMMAND_COLLAPSE, copy,
                    DEEPUM_DIRECTION_COPY);
    for (UmBlock& block : blocks) {
      if (block.host_copy.read_mostly) {
        end_duplication(block);
      }
    }
  }
}

// Done before a write-back that is still to be made, the end of a duplication would be undone by
// it: a prefetch of what is there does not wait for such. 0: what waits for the latest move of the
// block waits for that, too.
MoveId CopyBack::write_back_to_come(const UmBlock& block) {
  return block.moves.out_keeps && block.moves.out < block.moves.in ? block.moves.out : 0;
}

void CopyBack::end_duplication(UmBlock& block) {
  commands_.fence(block.key.device, DEEPUM_COMMAND_COLLAPSE, write_back_to_come(block),
                  DEEPUM_DIRECTION_COPY);
  commands_.move(DEEPUM_COMMAND_COLLAPSE, block, {0, 0, std::max(block.moves.in, block.moves.out)});
  forget_duplicate(block);
}

void CopyBack::mark_read_mostly(UmBlock& block) {
  read_mostly_blocks_ += std::exchange(block.host_copy.read_mostly, true) ? 0 : 1;
}

void CopyBack::forget_duplicate(UmBlock& block) {
  read_mostly_blocks_ -= std::exchange(block.host_copy.read_mostly, false) ? 1 : 0;
  block.host_copy.single_since = now_.event;
  lose_host_copy(block);
}

void CopyBack::lose_host_copy(UmBlock& block) {
  block.host_copy.ahead_of_need = false;
  devices_.of(block).mark_dirty(block);
}

// The block is about to be prefetched. Duplicating pays for what lives on for iterations, or is
// known to leave before it is written again, but not for what came into being just now, which the
// launch at hand writes. Advice goes in order with the prefetches: none is given that would wait
// for a copy still to be made, behind launches still to run.
void CopyBack::before_entry(UmBlock& block, const SpanUse& use) {
  DeviceMemory& device = devices_.of(block);
  if (block.host_copy.read_mostly && (use.now == Use::kWrites || !pace_.on())) {
    end_duplication(block);
  }
  const std::uint64_t lived = now_.launch - block.content.filled;
  const bool settled = lived > now_.iteration && (block.host_copy.written == 0 ||
                                                  now_.launch - block.host_copy.written >
                                                      now_.iteration / parameters_.settled_share);
  const bool reads_content = use.now != Use::kWrites && block.content.populated;
  if (!pace_.on() && settled && !block.host_copy.queued && reads_content) {
    block.host_copy.queued = true;  // if write-backs turn out to be worth it
    queued_[device.ordinal].once_settled.push_back({block.key.slot, block.key.index, now_.launch});
  }
  const bool waits = commands_.direction_of(block.moves.in) == DEEPUM_DIRECTION_COLLAPSE ||
                     commands_.direction_of(block.moves.out) == DEEPUM_DIRECTION_COPY;
  // Two arguments may share a block, of which one is written.
  const bool written_now = block.host_copy.written == now_.launch;
  if (!block.host_copy.read_mostly && !waits && reads_content && !written_now &&
      (settled || (use.leaves && lived > 0)) && may_duplicate(block)) {
    commands_.move(DEEPUM_COMMAND_ADVISE, block, {0, 0, std::max(block.moves.in, block.moves.out)},
                   DEEPUM_MEM_ADVISE_SET_READ_MOSTLY, -1);
    mark_read_mostly(block);
  }
  if (block.host_copy.read_mostly && block.content.populated) {
    device.mark_clean(block);
    block.host_copy.valid_since = now_.event;
  }
}

std::optional<Exit> CopyBack::exit(const UmBlock& block) const {
  return block.residency.clean ? std::optional(Exit::kDrop) : std::nullopt;
}

void CopyBack::after_exit(UmBlock& block, Exit exit) {
  WriteBack& queued = queued_[block.key.device];
  if (exit == Exit::kDrop) {
    judge(block, true);
  } else if (exit == Exit::kEvict) {
    queued.evicted_at = now_.launch;
    forget_duplicate(block);
  }
  queued.evictions += exit == Exit::kDiscard ? 0 : 1;
}

// What stays for long, is used then, and leaves before it is written again is written back at once.
// How long is told by what launches touch: an optimizer has a hundredth of a training step's
// launches, and a fifth of its time.
bool CopyBack::pays_at_once(const BlockUser& writer) {
  const RunUse* const run = executions_.use_by(writer);
  return run != nullptr && run->in_vain == 0 &&
         run->stays_first(
             std::max<std::uint64_t>(iterations_.work() / parameters_.lasting_share, 1));
}

// What lives on for iterations is written back once it has settled: for what is written, read and
// dead within one, there is nothing else to gain.
bool CopyBack::pays_once_settled(const UmBlock& block) {
  const RunUse* const run = executions_.use_by(block.uses.writer);
  return now_.launch - block.content.filled > now_.iteration &&
         (run == nullptr || run->in_vain == 0);
}

// If the block was written back ahead of need, it now left without a copy, or was written before it
// did. What leaves in one iteration and stays in the next would be written back in vain each time.
void CopyBack::judge(UmBlock& block, bool left) {
  if (!std::exchange(block.host_copy.ahead_of_need, false)) {
    return;
  }
  if (RunUse* const run = executions_.use_by(block.uses.writer);
      run != nullptr && pace_.representative() && !planned_) {
    run->in_vain = left ? run->in_vain - std::min(run->in_vain, 1u)
                        : std::min(run->in_vain + 1, parameters_.most_wasted);
  }
}

void CopyBack::after(std::span<const Access> accesses, std::uint32_t device, std::uint32_t stream) {
  if (duplicates() && !planned_) {
    queue(accesses);
    write_back(devices_[device], 1ull << stream);
  }
}

// What the launch at hand may have written is to be written back one day; at once only what it did
// write.
void CopyBack::queue(std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    const std::span<UmBlock> blocks = memory_.blocks(access.span);
    DeviceMemory& device = devices_[memory_.at(access.span.slot).device];
    if (access.use.now == Use::kReads || !device.residency.under_pressure()) {
      continue;
    }
    WriteBack& queued = queued_[device.ordinal];
    statistics_.operations += blocks.size();
    const bool wrote = access.use.now == Use::kWrites || access.use.creates;
    const bool pays =
        wrote && access.use.leaves && pays_at_once(blocks[blocks.size() / 2].uses.writer);
    for (UmBlock& block : blocks) {
      block.host_copy.written = now_.launch;
      if (!block.host_copy.queued && !block.residency.clean && may_duplicate(block) &&
          (pays || pays_once_settled(block))) {
        block.host_copy.queued = true;
        (pays ? queued.at_once : queued.once_settled)
            .push_back({block.key.slot, block.key.index, now_.launch});
      }
    }
  }
}

void CopyBack::count_evictions(WriteBack& queued) const {
  if (now_.launch - queued.counted_from >= now_.iteration) {
    queued.evictions_lately = std::exchange(queued.evictions, 0);
    queued.counted_from = now_.launch;
  }
  queued.evictions_lately = std::max(queued.evictions_lately, queued.evictions);
}

// What was written longest ago goes first, no more than is evicted in an iteration, behind the
// launch at hand: so it goes as the program does, and what has settled a few blocks at a time,
// between which evictions find their way.
void CopyBack::write_back(DeviceMemory& device, std::uint64_t stream) {
  WriteBack& queued = queued_[device.ordinal];
  count_evictions(queued);
  if (now_.launch - queued.evicted_at < now_.iteration / parameters_.quiet_share) {
    return;
  }
  std::uint64_t left = 1 + parameters_.haste * queued.evictions_lately / now_.iteration;
  for (const bool at_once : {true, false}) {
    std::deque<Written>& queue = at_once ? queued.at_once : queued.once_settled;
    for (std::uint32_t i = 0; i < parameters_.scan && (at_once || left > 0) && !queue.empty() &&
                              device.residency.clean() < queued.evictions_lately;
         ++i) {
      if (!at_once &&
          now_.launch - queue.front().launch < now_.iteration / parameters_.settled_share) {
        break;
      }
      const bool written_back = write_back_next(device, at_once, stream);
      left -= written_back && !at_once ? 1 : 0;
    }
  }
}

// False: the first block of the queue is not written back now.
bool CopyBack::write_back_next(DeviceMemory& device, bool at_once, std::uint64_t stream) {
  std::deque<Written>& queue =
      at_once ? queued_[device.ordinal].at_once : queued_[device.ordinal].once_settled;
  const Written next = queue.front();
  queue.pop_front();
  ++statistics_.operations;
  UmBlock& block = memory_.at(next.slot).blocks[next.index];
  if (!at_once && block.host_copy.written > next.launch && may_duplicate(block) &&
      pays_once_settled(block)) {  // and again
    queue.push_back({next.slot, next.index, now_.launch});
    return false;
  }
  block.host_copy.queued = false;
  const bool soon_written = block.uses.next > now_.launch && block.uses.next_use == Use::kWrites &&
                            block.uses.next < now_.launch + now_.iteration / 2;
  if (!block.residency.resident || block.residency.clean || !block.content.populated ||
      !may_duplicate(block) || soon_written ||
      !(at_once ? pays_at_once(block.uses.writer) : pays_once_settled(block))) {
    return false;
  }
  copy_out(block, stream | block.moves.streams);
  block.host_copy.ahead_of_need = true;
  return true;
}

void CopyBack::write_back(UmBlock& block) {
  if (block.content.populated && !block.residency.clean && may_duplicate(block)) {
    copy_out(block, block.moves.streams);
  }
}

void CopyBack::copy_out(UmBlock& block, std::uint64_t streams) {
  commands_.move(DEEPUM_COMMAND_COPY_OUT, block,
                 {now_.event, streams, std::max(block.moves.in, block.moves.out)});
  mark_read_mostly(block);
  block.host_copy.valid_since = now_.event;
  devices_.of(block).mark_clean(block);
}

// What was written before the copy was made was copied with it.
void CopyBack::write_faulted(std::span<UmBlock> blocks) {
  for (UmBlock& block : blocks) {
    if (block.host_copy.read_mostly && block.host_copy.valid_since <= trials_.begun()) {
      judge(block, false);
      block.host_copy.single_since = now_.event;
      lose_host_copy(block);
    }
  }
}

}  // namespace deepum::core
