// The mover's decisions about one command: may it go, with which others, and what became of it.
#include <algorithm>
#include <utility>

#include "discards.hpp"
#include "driver.hpp"
#include "message.hpp"
#include "mover.hpp"
#include "session.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint32_t kMostFailures = 16;  // in a row

bool known_kind(const deepum_command& command) noexcept {
  return command.kind >= DEEPUM_COMMAND_PREFETCH && command.kind <= DEEPUM_COMMAND_POPULATE && command.kind != DEEPUM_COMMAND_HOLD;
}

}  // namespace

void Mover::carry_out() {
  wants_marker_ = looks_again_soon_ = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
      for (const int direction : mover::kDirectionOrder) {
        if (!devices_[device].lanes[direction].queue.empty()) {
          progress |= advance(device, direction);
        }
      }
    }
  }
}

// A stream that waits for a value may wait for what comes behind this launch, and a graph takes long that waits for all it needs.
bool Mover::ties_streams(const deepum_command& hold) noexcept {
  return hold.advice == DEEPUM_HOLD_BEHIND_OTHERS && Discards::instance().forbidden();
}

// The launch waits for this round, so that what is queued on its stream here lies before it. All that the prefetch waits for is in the
// driver's hands by now, so nothing waits for what the program has not launched yet.
void Mover::hold_launches() {
  for (const deepum_command& hold : holds_) {
    const CUcontext context = contexts_[hold.device].load(std::memory_order_acquire);
    if (hold.stream_mask == 0) {
      continue;
    }
    const auto id = static_cast<std::uint32_t>(__builtin_ctzll(hold.stream_mask));
    const CUstream stream = markers_.stream(id, context);
    const bool threads_own = markers_.is_a_threads_own(id);
    for (std::size_t i = 0; i < kBringing.size(); ++i) {
      const deepum_direction direction = kBringing[i];
      MoveLane& lane = devices_[hold.device].lanes[direction];
      const bool given =
          !lane.queue.find(hold.after_move) && settled_->lane(hold.after_move) == lane_number(static_cast<int>(hold.device), direction);
      if (off_ || ties_streams(hold) || (!stream && !threads_own) || !given || !use_device(static_cast<int>(hold.device))) {
        continue;
      }
      if (threads_own) {
        threads_holds_[i][id].store(event_after(lane, hold.after_move));
      } else {
        if (CUevent behind = event_after(lane, hold.after_move)) {
          driver().StreamWaitEvent(stream, behind, 0);
        }
      }
    }
  }
  holds_.clear();
}

// As far as this direction can go now. True: something became of at least one command.
bool Mover::advance(int device, int direction) {
  MoveLane& lane = devices_[device].lanes[direction];
  bool progress = false;
  while (!lane.queue.empty()) {
    const deepum_command command = lane.queue[0].command;
    if (off_ || !known_kind(command)) {
      finish(lane, command.id, mover::SettledMoves::kNowhere);
      answer(command, DEEPUM_MOVED_CANCELLED);
    } else if (direction == DEEPUM_DIRECTION_DISCARD ? !issue_discard(device) : !issue(device, direction)) {
      return progress;
    }
    progress = true;
  }
  return progress;
}

// The first command of the queue, with those behind it that can go along. False: it has to stay.
bool Mover::issue(int device, int direction) {
  MoveLane& lane = devices_[device].lanes[direction];
  const deepum_command head = lane.queue[0].command;
  if (!contexts_[device].load(std::memory_order_acquire)) {  // it ended, which is no failure; another may come
    finish(lane, head.id, mover::SettledMoves::kNowhere);
    answer(head, DEEPUM_MOVED_CANCELLED);
    return true;
  }
  Requirements required;
  if (!requirements(device, direction, head, &required)) {
    return false;
  }
  bool again = false;
  const auto prepared = [&] { return use_device(device) && prepare(lane); };
  if (waits_itself(head) && prepared() && !reached(lane, required)) {
    looks_again_soon_ = true;
    return false;
  }
  if (only_waits(head)) {
    const bool waits = prepared() && wait_for(lane, required, &again);
    if (again) {
      return true;
    }
    count_failure(waits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
    // Its launch is held all the same: what that faults on must not come before there is room for it.
    const bool holds = waits && (in_lock_step_ || gated());
    finish(lane, head.id, holds ? lane_number(device, direction) : mover::SettledMoves::kNowhere);
    if (holds) {
      lane.ledger.issued(head.id, 0, false);
    }
    if (holds && (holds_launches_ || gated())) {
      lane.ledger.record(*this, head.id);
    }
    return true;
  }

  std::vector<Span> spans;
  std::vector<Allocations::Pin> pins;
  pins.push_back(Allocations::instance().pin(head.slot, head.generation, head.first_block, head.block_count));
  if (!pins[0]) {
    finish(lane, head.id, mover::SettledMoves::kNowhere);
    answer(head, DEEPUM_MOVED_STALE);
    return true;
  }
  spans.push_back({pins[0].address, pins[0].bytes});
  if (limited() && lane.ledger.outstanding() != 0 && lane.ledger.outstanding() + pins[0].bytes > handover_bytes_) {
    lane.ledger.collect(*this);
    if (lane.ledger.outstanding() != 0 && lane.ledger.outstanding() + pins[0].bytes > handover_bytes_) {
      looks_again_soon_ = true;
      return false;
    }
  }

  const bool usable = prepared() && wait_for(lane, required, &again);
  if (again) {
    return true;  // a marker went on while we waited for it
  }
  std::size_t commands = 1;
  CUresult result = usable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  const bool at_once = advises_at_once(head);
  if (usable && at_once) {
    result = advise(spans[0], static_cast<CUmem_advise>(head.advice), head.location < 0 ? kHost : head.location);
  } else if (usable) {
    commands = gather(device, direction, &spans, &pins);
    result = carry(lane, device, head, spans);
  }
  count_failure(result);

  std::uint64_t bytes = 0;
  for (const Allocations::Pin& pin : pins) {
    bytes += pin.bytes;
  }
  bool awaited = false;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < commands; ++i) {
    const mover::Move move = lane.queue[0];
    last = move.command.id;
    awaited |= move.awaited;
    finish(lane, last, result == CUDA_SUCCESS && !at_once ? lane_number(device, direction) : mover::SettledMoves::kNowhere);
    if (result != CUDA_SUCCESS) {
      answer(move.command, DEEPUM_MOVED_FAILED, result);
    }
  }
  if (result != CUDA_SUCCESS || at_once) {
    return true;
  }
  lane.ledger.issued(last, bytes, limited());
  // An event that lies behind later moves as well may wait for a launch that its gate keeps back until the event has come.
  if (gated()) {
    lane.ledger.keep_until_complete();
  }
  if (awaited || gated() || (holds_launches_ && brings(direction)) ||
      lane.ledger.since_event() >= (in_lock_step_ ? mover::kEventBytes : handover_bytes_ / 16)) {
    lane.ledger.record(*this, last);
  }
  return true;
}

// Commands right behind the first that need nothing more to wait for, and which nobody waits for before their end: adjacent ones
// become one span, others one call where the driver has batches. Where this thread waits itself, calls are few and long: what has been done
// is nothing to wait for, and a command that waits for one of them waits for all. Returns how many go, the first included.
std::size_t Mover::gather(int device, int direction, std::vector<Span>* spans, std::vector<Allocations::Pin>* pins) {
  const MoveLane& lane = devices_[device].lanes[direction];
  const deepum_command& head = lane.queue[0].command;
  const std::uint8_t kind = head.kind;
  std::uint64_t bytes = (*pins)[0].bytes;
  std::size_t count = 1;
  for (; count < lane.queue.size() && pins->size() < 4 * kMostInBatch &&
         (limited() || lane.ledger.since_event() + bytes < mover::kEventBytes);
       ++count) {
    const deepum_command& next = lane.queue[count].command;
    Requirements more;
    const bool itself = waits_itself(next);
    if ((lane.queue[count - 1].awaited && !itself) || next.kind != kind || next.advice != head.advice || next.location != head.location ||
        (advises_in_order(next) && !serves_advice()) || (in_lock_step_ && next.cause != head.cause) ||
        !requirements(device, direction, next, &more) || !(more.empty() || (itself && done(more)))) {
      break;
    }
    auto pin = Allocations::instance().pin(next.slot, next.generation, next.first_block, next.block_count);
    if (!pin || (limited() && lane.ledger.outstanding() + bytes + pin.bytes > handover_bytes_)) {
      break;
    }
    Span& last = spans->back();
    if (last.address + last.bytes == pin.address && next.slot == lane.queue[count - 1].command.slot) {
      last.bytes += pin.bytes;
    } else if (has_batches() && spans->size() < kMostInBatch) {
      spans->push_back({pin.address, pin.bytes});
    } else {
      break;
    }
    bytes += pin.bytes;
    pins->push_back(std::move(pin));
  }
  return count;
}

bool Mover::use_device(int device) noexcept { return use_context(contexts_[device].load(std::memory_order_acquire)); }

bool Mover::use_context(CUcontext context) noexcept {
  if (!context) {
    return false;
  }
  if (current_ != context) {
    if (!driver().CtxSetCurrent || driver().CtxSetCurrent(context) != CUDA_SUCCESS) {
      return false;
    }
    current_ = context;
  }
  return true;
}

void Mover::finish(MoveLane& lane, std::uint64_t id, int where) {
  settled_->settle(id, where);
  lane.queue.pop();
  waiting_.fetch_sub(1, std::memory_order_release);
}

void Mover::answer(const deepum_command& command, deepum_moved_status status, CUresult error) noexcept {
  deepum_moved_event event = moved_event(command, status, static_cast<std::uint32_t>(error));
  emit(&event.header);
}

void Mover::count_failure(CUresult error) noexcept {
  if (error == CUDA_SUCCESS) {
    failures_in_a_row_ = 0;
    return;
  }
  if (++failures_in_a_row_ < kMostFailures || off_) {
    return;
  }
  off_ = true;
  gates_.end();
  // At a program's end its context goes first: nothing worth a word.
  if (error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return;
  }
  say(Level::kWarning, "warning: mover: %u moves in a row failed (CUDA error %d); going on without prefetching", kMostFailures, error);
}

}  // namespace deepum::runtime
