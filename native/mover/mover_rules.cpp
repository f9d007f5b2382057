#include "mover_rules.hpp"

#include "commands.hpp"

namespace deepum::mover {
namespace {

constexpr std::uint64_t kMostWaiting = 1u << 18;  // commands; the core keeps far fewer under way

}  // namespace

MoverRules::MoverRules(MoverBackend& backend, const MoverOptions& options)
    : backend_(backend), options_(options), gate_rules_(backend, *this) {
  lanes_.reserve(std::size_t{options.devices} * DEEPUM_DIRECTIONS);
  for (LaneId lane = 0; lane < options.devices * DEEPUM_DIRECTIONS; ++lane) {
    lanes_.push_back({{}, LaneLedger(lane)});
  }
}

void MoverRules::accept(const deepum_command& given) {
  deepum_command command = given;
  if (brings(command) && !options_.fetches) {
    command.block_count = 0;  // only waits
  }
  const bool known_device = command.device < options_.devices;
  if (command.kind == DEEPUM_COMMAND_HOLD) {
    settled_->settle(command.id, SettledMoves::kNowhere);
    if (options_.lock_step && known_device && command.stream_mask != 0 &&
        holds_.size() < DEEPUM_MAX_STREAMS) {
      holds_.push_back(command);
      holds_launches_ = true;
    }
    if (options_.gates && !options_.lock_step && known_device && !ties_streams(command)) {
      gate_rules_.hold(command);
    }
    return;
  }
  if (!known_device || waiting_ >= kMostWaiting) {
    settled_->settle(command.id, SettledMoves::kNowhere);
    backend_.answer(command, DEEPUM_MOVED_CANCELLED, kSuccess);
    return;
  }
  Lane& own = lane_of(command.device, direction_of(command.kind));
  own.queue.push(command);
  ++waiting_;
  if (command.after_move == 0) {
    return;
  }
  for (Lane& lane : lanes_) {
    if (Move* const awaited = &lane != &own ? lane.queue.find(command.after_move) : nullptr) {
      awaited->awaited = true;
    }
  }
}

void MoverRules::round(std::uint64_t decided) {
  wants_marker_ = looks_again_soon_ = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::uint32_t device = 0; device < options_.devices; ++device) {
      for (const deepum_direction direction : kDirectionOrder) {
        Lane& lane = lane_of(device, direction);
        progress |= !lane.queue.empty() && advance(lane);
      }
    }
  }
  hold_launches();
  gate_rules_.open(decided);
}

// As far as this lane can go now. True: something became of at least one command.
bool MoverRules::advance(Lane& lane) {
  const bool discards = lane_direction(lane.ledger.lane()) == DEEPUM_DIRECTION_DISCARD;
  bool progress = false;
  while (!lane.queue.empty()) {
    const deepum_command command = lane.queue[0].command;
    if (off_ || !carried_out(command)) {
      give_up(lane, command, DEEPUM_MOVED_CANCELLED);
    } else if (discards ? !issue_discard(lane) : !issue(lane)) {
      return progress;
    }
    progress = true;
  }
  return progress;
}

void MoverRules::finish(Lane& lane, const deepum_command& command, int where) {
  settled_->settle(command.id, where);
  lane.queue.pop();
  --waiting_;
}

void MoverRules::give_up(Lane& lane, const deepum_command& command, deepum_moved_status status,
                         Error error) {
  finish(lane, command, SettledMoves::kNowhere);
  backend_.answer(command, status, error);
}

void MoverRules::count_failure(Error error) {
  failures_in_a_row_ = error == kSuccess ? 0 : failures_in_a_row_ + 1;
  if (failures_in_a_row_ >= kMostFailures && !off_) {
    off_ = true;
    backend_.turned_off(error);
  }
}

void MoverRules::forget_streams(std::uint32_t device) noexcept {
  for (std::uint32_t direction = 0; direction < DEEPUM_DIRECTIONS; ++direction) {
    lane_of(device, direction).ledger.forget_stream();
  }
}

// A stream that waits for a value may wait for what comes behind this launch, and a graph takes
// long that waits for all it needs.
bool MoverRules::ties_streams(const deepum_command& hold) const {
  return hold.advice == DEEPUM_HOLD_BEHIND_OTHERS && backend_.discards_forbidden();
}

// The launch waits for this round, so that what is queued on its stream here lies before it. All
// that the prefetch waits for is in the driver's hands by now, so nothing waits for what the
// program has not launched yet.
void MoverRules::hold_launches() {
  for (const deepum_command& hold : holds_) {
    if (off_ || ties_streams(hold) || !backend_.can_hold(hold)) {
      continue;
    }
    for (std::size_t i = 0; i < kBringing.size(); ++i) {
      Lane& lane = lane_of(hold.device, kBringing[i]);
      const LaneId id = lane.ledger.lane();
      if (lane.queue.find(hold.after_move) == nullptr &&
          settled_->lane(hold.after_move) == static_cast<int>(id) && backend_.prepare(id)) {
        backend_.hold(hold, i, lane.ledger.event_after(backend_, hold.after_move));
      }
    }
  }
  holds_.clear();
}

bool MoverRules::issued(const deepum_command& hold, std::vector<EventHandle>* events) {
  for (const deepum_direction direction : kBringing) {
    Lane& lane = lane_of(hold.device, direction);
    const LaneId id = lane.ledger.lane();
    if (lane.queue.find(hold.after_move) != nullptr) {
      return false;
    }
    if (settled_->lane(hold.after_move) == static_cast<int>(id) && backend_.prepare(id)) {
      if (const EventHandle behind = lane.ledger.event_after(backend_, hold.after_move);
          behind != 0) {
        events->push_back(behind);
      }
    }
  }
  return true;
}

}  // namespace deepum::mover
