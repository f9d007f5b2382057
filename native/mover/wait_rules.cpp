// What a command has to wait for, and how its lane comes to wait for it.
#include <algorithm>

#include "commands.hpp"
#include "mover_rules.hpp"

namespace deepum::mover {

// What the lane still has to wait for. False: it does not exist yet.
bool MoverRules::requirements(const Lane& lane, const deepum_command& command,
                              Requirements* found) {
  for (std::uint64_t mask = command.after_sequence != 0 ? command.stream_mask : 0; mask != 0;
       mask &= mask - 1) {
    if (!marked(lane, static_cast<std::uint32_t>(__builtin_ctzll(mask)), command.after_sequence,
                found)) {
      return false;
    }
  }
  // A command can only follow an earlier one.
  if (command.after_move == 0 || command.after_move >= command.id) {
    return true;
  }
  for (Lane& other : lanes_) {
    if (&other != &lane && other.queue.find(command.after_move) != nullptr) {
      return false;
    }
  }
  const auto follow = [&](Lane& other, std::uint64_t id) {
    if (&other != &lane && !lane.ledger.waits_for(other.ledger, id)) {
      found->moves.emplace_back(&other, id);
    }
  };
  const int where = settled_->lane(command.after_move);
  if (where == SettledMoves::kLongAgo) {
    for (std::uint32_t direction = 0; direction < DEEPUM_DIRECTIONS; ++direction) {
      // What a lane has had since may wait for launches that wait for this command.
      Lane& other = lane_of(lane_device(lane.ledger.lane()), direction);
      if (const std::uint64_t latest = other.ledger.latest_until(command.after_move); latest != 0) {
        follow(other, latest);
      }
    }
  } else if (where != SettledMoves::kNowhere) {
    follow(lanes_[static_cast<LaneId>(where)], command.after_move);
  }
  return true;
}

// The stream's launches up to the sequence lie before markers.
bool MoverRules::marked(const Lane& lane, std::uint32_t stream, std::uint64_t sequence,
                        Requirements* found) {
  covering_.clear();
  if (!backend_.cover(stream, sequence, &covering_)) {
    // In lock-step the launching thread waits for this round, so that the marker may as well be
    // recorded here and now.
    covering_.clear();
    if (!options_.lock_step || !backend_.record_marker(lane_device(lane.ledger.lane()), stream) ||
        !backend_.cover(stream, sequence, &covering_)) {
      backend_.want_marker(stream);
      wants_marker_ = true;
      return false;
    }
  }
  for (const MarkerRef& marker : covering_) {
    if (!lane.ledger.waits_for(marker)) {
      found->markers.push_back(marker);
    }
  }
  return true;
}

bool MoverRules::serves_advice() const {
  deepum_command move{};
  move.kind = DEEPUM_COMMAND_PREFETCH;
  return options_.lock_step || (gated() && backend_.defers(move));
}

// Whether the command goes to the driver once all that it follows is done, and not behind events.
// In lock-step never: the launching thread waits for the round.
bool MoverRules::waits_itself(const deepum_command& command) const {
  return !options_.lock_step && !advises_at_once(command) &&
         (!backend_.defers(command) || (advises_in_order(command) && !serves_advice()));
}

// The command waits itself, and what it follows is not done or its lane's stream not idle.
bool MoverRules::stays(Lane& lane, const deepum_command& command, const Requirements& required) {
  const LaneId id = lane.ledger.lane();
  if (!waits_itself(command) || !backend_.prepare(id) || (done(required) && backend_.idle(id))) {
    return false;
  }
  looks_again_soon_ = true;
  return true;
}

bool MoverRules::done(const Requirements& required) {
  const auto completed = [this](EventHandle event) {
    return event == 0 || backend_.completed(event);
  };
  return std::ranges::all_of(required.markers,
                             [&](const MarkerRef& marker) { return completed(marker.event); }) &&
         std::ranges::all_of(required.moves, [&](const auto& move) {
           return completed(move.first->ledger.event_after(backend_, move.second));
         });
}

MoverRules::Wait MoverRules::wait_for(Lane& lane, const Requirements& required) {
  for (const MarkerRef& marker : required.markers) {
    if (!backend_.wait_event(lane.ledger.lane(), marker.event)) {
      return Wait::kFailed;
    }
    // Recorded anew in the meantime: behind later launches, or even on another stream that has the
    // id now.
    if (!backend_.still(marker)) {
      return Wait::kAgain;
    }
    lane.ledger.note_wait(marker);
  }
  const bool waits = std::ranges::all_of(required.moves, [&](const auto& move) {
    return lane.ledger.wait(backend_, move.first->ledger, move.second);
  });
  return waits ? Wait::kDone : Wait::kFailed;
}

}  // namespace deepum::mover
