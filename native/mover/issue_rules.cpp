// Commands that move or advise: may the first of a lane go, with which others, and what becomes of
// them.
#include "commands.hpp"
#include "mover_rules.hpp"
#include "operation.hpp"

namespace deepum::mover {

// The first command of the lane, with those behind it that can go along. False: it has to stay.
bool MoverRules::issue(Lane& lane) {
  const LaneId id = lane.ledger.lane();
  const deepum_command head = lane.queue[0].command;
  if (!backend_.has_context(head.device)) {  // it ended, which is no failure; another may come
    give_up(lane, head, DEEPUM_MOVED_CANCELLED);
    return true;
  }
  Requirements required;
  if (!requirements(lane, head, &required) || stays(lane, head, required)) {
    return false;
  }
  if (only_waits(head)) {
    return issue_wait(lane, required);
  }
  Pins pins(backend_);
  const std::optional<Range> range = pins.add(head);
  if (!range) {
    give_up(lane, head, DEEPUM_MOVED_STALE);
    return true;
  }
  if (full(lane, range->bytes)) {
    looks_again_soon_ = true;
    return false;
  }
  const Wait waited = backend_.prepare(id) ? wait_for(lane, required) : Wait::kFailed;
  if (waited == Wait::kAgain) {
    return true;
  }
  std::vector<Range> ranges{*range};
  std::uint64_t bytes = range->bytes;
  std::size_t commands = 1;
  const bool at_once = advises_at_once(head);
  Error error = kInvalidContext;
  if (waited == Wait::kDone && at_once) {
    const Operation operation(backend_, head, commands, ranges);
    error = backend_.advise_now(id, ranges, advice_before(head));
  } else if (waited == Wait::kDone) {
    commands = gather(lane, &ranges, &bytes, &pins);
    const Operation operation(backend_, head, commands, ranges);
    error = carry_out(lane, head, ranges);
  }
  count_failure(error);
  settle_issued(lane, commands, bytes, at_once, error);
  return true;
}

// A launch that is held for the command is held all the same: what it faults on must not come
// before there is room for it.
bool MoverRules::issue_wait(Lane& lane, const Requirements& required) {
  const LaneId id = lane.ledger.lane();
  const Move fence = lane.queue[0];
  const Wait waited = backend_.prepare(id) ? wait_for(lane, required) : Wait::kFailed;
  if (waited == Wait::kAgain) {
    return true;
  }
  const bool done = waited == Wait::kDone;
  count_failure(done ? kSuccess : kInvalidContext);
  finish(lane, fence.command, done ? static_cast<int>(id) : SettledMoves::kNowhere);
  if (!done) {
    return true;
  }
  lane.ledger.issued(fence.command.id, 0, false);
  if (fence.awaited || holds_launches_ || gated()) {
    lane.ledger.record(backend_, fence.command.id);
  }
  return true;
}

void MoverRules::settle_issued(Lane& lane, std::size_t commands, std::uint64_t bytes, bool at_once,
                               Error error) {
  const LaneId id = lane.ledger.lane();
  bool awaited = false;
  const std::uint64_t first = lane.queue[0].command.id;
  std::uint64_t last = first;
  for (std::size_t i = 0; i < commands; ++i) {
    const Move move = lane.queue[0];
    last = move.command.id;
    awaited |= move.awaited;
    finish(lane, move.command,
           error == kSuccess && !at_once ? static_cast<int>(id) : SettledMoves::kNowhere);
    if (error != kSuccess) {
      backend_.answer(move.command, DEEPUM_MOVED_FAILED, error);
    }
  }
  if (error != kSuccess || at_once) {
    return;
  }
  lane.ledger.issued(first, last, bytes, limited());
  // An event that lies behind later moves as well may wait for a launch that its gate keeps back
  // until the event has come.
  if (gated()) {
    lane.ledger.keep_until_complete();
  }
  if (awaited || gated() || (holds_launches_ && brings(static_cast<int>(lane_direction(id)))) ||
      lane.ledger.since_event() >=
          (options_.lock_step ? kEventBytes : options_.handover_bytes / 16)) {
    lane.ledger.record(backend_, last);
  }
}

bool MoverRules::full(Lane& lane, std::uint64_t bytes) {
  const auto over = [&] {
    return limited() && lane.ledger.outstanding() != 0 &&
           lane.ledger.outstanding() + bytes > options_.handover_bytes;
  };
  if (over()) {
    lane.ledger.collect(backend_);
  }
  return over();
}

// Commands right behind the first that need nothing more to wait for, and that no other direction
// waits for before their end: adjacent ones become one range, others one call where the driver has
// batches. Where this thread waits itself, calls are few and long: what has been done is nothing to
// wait for, and a command that waits for one of them waits for all. Returns how many go, the first
// included.
std::size_t MoverRules::gather(Lane& lane, std::vector<Range>* ranges, std::uint64_t* bytes,
                               Pins* pins) {
  const deepum_command head = lane.queue[0].command;
  const auto room = [&](std::uint64_t more) {
    return limited() ? lane.ledger.outstanding() + *bytes + more <= options_.handover_bytes
                     : lane.ledger.since_event() + *bytes < kEventBytes;
  };
  std::size_t count = 1;
  for (; count < lane.queue.size() && count < 4 * kMostInBatch && room(0); ++count) {
    const deepum_command& next = lane.queue[count].command;
    Requirements more;
    const bool itself = waits_itself(next);
    if ((lane.queue[count - 1].awaited && !itself) || next.kind != head.kind ||
        next.advice != head.advice || next.location != head.location ||
        (advises_in_order(next) && !serves_advice()) ||
        (options_.lock_step && next.cause != head.cause) || !requirements(lane, next, &more) ||
        !(more.empty() || (itself && done(more)))) {
      break;
    }
    const std::optional<Range> range = pins->add(next);
    if (!range) {
      break;
    }
    Range& last = ranges->back();
    const bool adjacent = last.address + last.bytes == range->address &&
                          next.slot == lane.queue[count - 1].command.slot;
    if (!room(range->bytes) ||
        (!adjacent && (!backend_.has_batches() || ranges->size() >= kMostInBatch))) {
      pins->drop_last();
      break;
    }
    if (adjacent) {
      last.bytes += range->bytes;
    } else {
      ranges->push_back(*range);
    }
    *bytes += range->bytes;
  }
  return count;
}

Error MoverRules::carry_out(Lane& lane, const deepum_command& command,
                            const std::vector<Range>& ranges) {
  const LaneId id = lane.ledger.lane();
  const auto advise = [&](const AdviceList& advice) {
    if (advice.empty()) {
      return kSuccess;
    }
    return serves_advice() ? backend_.serve_advice(id, ranges, advice)
                           : backend_.advise_now(id, ranges, advice);
  };
  Error error = advise(advice_before(command));
  if (error == kSuccess && moves(command)) {
    error = backend_.prefetch(id, ranges,
                              brings(command) ? static_cast<std::int32_t>(command.device) : -1);
  }
  return error == kSuccess ? advise(advice_after(command)) : error;
}

}  // namespace deepum::mover
