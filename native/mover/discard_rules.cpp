// Discards, the one kind of command that destroys data: proposed by the daemon, committed here.
#include "mover_rules.hpp"
#include "operation.hpp"

namespace deepum::mover {
// The program may use the memory again at any moment: from the commitment on, its streams wait for
// the event that follows here.
bool MoverRules::issue_discard(Lane& lane) {
  const LaneId id = lane.ledger.lane();
  deepum_command command = lane.queue[0].command;
  command.stream_mask |= backend_.unreported_streams();
  Requirements required;
  if (!requirements(lane, command, &required)) {
    return false;
  }
  Pins pins(backend_);
  const std::optional<Range> range = pins.add(command);
  if (!range) {
    give_up(lane, command, DEEPUM_MOVED_STALE);
    return true;
  }
  if (!backend_.can_discard()) {
    give_up(lane, command, DEEPUM_MOVED_REFUSED);
    return true;
  }
  if (stays(lane, command, required)) {
    return false;
  }
  if (!backend_.prepare(id) || !backend_.commit_discard(id, command, *range)) {
    give_up(lane, command, DEEPUM_MOVED_CANCELLED);
    return true;
  }
  Wait waited = Wait::kFailed;
  Error error = kInvalidContext;
  {
    // The commitment is followed up even where there is no memory left for what the lane waits for.
    struct Committed {
      MoverBackend& backend;
      const LaneId lane;
      const std::uint64_t address, id;
      EventHandle behind = 0;
      ~Committed() { backend.discard_given(lane, address, id, behind); }
    } committed{backend_, id, range->address, command.id};
    waited = wait_for(lane, required);
    if (waited == Wait::kDone) {
      const Operation operation(backend_, command, 1, {&*range, 1});
      error = backend_.discard(id, *range);
    }
    if (error == kSuccess) {
      lane.ledger.issued(command.id, 0, false);
      committed.behind = lane.ledger.event_after(backend_, command.id);
      if (committed.behind == 0) {
        // Without an event to wait for, it has to be done before the memory is used again.
        backend_.synchronise(id);
      }
    }
  }
  if (waited == Wait::kAgain) {
    return true;
  }
  count_discard(error);
  finish(lane, command, error == kSuccess ? static_cast<int>(id) : SettledMoves::kNowhere);
  if (error != kSuccess) {
    backend_.answer(command, backend_.can_discard() ? DEEPUM_MOVED_FAILED : DEEPUM_MOVED_REFUSED,
                    error);
  }
  return true;
}

// Failures end the discards, not the mover: what is dead is evicted from then on.
void MoverRules::count_discard(Error error) {
  failed_discards_ = error == kSuccess ? 0 : failed_discards_ + 1;
  if (failed_discards_ == kMostFailedDiscards) {
    backend_.refuse_discards(error);
  }
}

}  // namespace deepum::mover
