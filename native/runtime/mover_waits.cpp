// What a command has to wait for, and how its lane comes to wait for it.
#include <algorithm>

#include "driver.hpp"
#include "event_handles.hpp"
#include "mover.hpp"

namespace deepum::runtime {

// What the lane still has to wait for. False: it does not exist yet.
bool Mover::requirements(int device, int direction, const deepum_command& command, Requirements* found) {
  const MoveLane& lane = devices_[device].lanes[direction];
  for (std::uint64_t mask = command.after_sequence ? command.stream_mask : 0; mask != 0; mask &= mask - 1) {
    const auto stream = static_cast<std::uint32_t>(__builtin_ctzll(mask));
    const auto cover = [&] {
      return markers_.cover(stream, command.after_sequence, [&](StreamMarkers& of, const Marker& marker) {
        if (!lane.ledger.waits_for(to_ref(of, marker))) {
          found->markers.emplace_back(&of, marker);
        }
      });
    };
    // In lock-step the launching thread waits for this round, so that the marker may as well be recorded here and now.
    if (!cover() && !(in_lock_step_ && use_device(device) && markers_.flush(stream) && cover())) {
      markers_.want(stream);
      wants_marker_ = true;
      return false;
    }
  }
  // A command can only follow an earlier one.
  if (command.after_move == 0 || command.after_move >= command.id) {
    return true;
  }
  for (Device& each : devices_) {
    for (MoveLane& other : each.lanes) {
      if (&other != &lane && other.queue.find(command.after_move)) {
        return false;
      }
    }
  }
  const int where = settled_->lane(command.after_move);
  for (int i = 0; i < kDirections && where != mover::SettledMoves::kNowhere; ++i) {
    const int number = where == mover::SettledMoves::kLongAgo ? lane_number(device, i) : where;
    MoveLane& other = devices_[number / kDirections].lanes[number % kDirections];
    if (&other != &lane && !lane.ledger.waits_for(other.ledger, command.after_move)) {
      found->moves.emplace_back(&other, command.after_move);
    }
    if (where != mover::SettledMoves::kLongAgo) {
      break;
    }
  }
  return true;
}

bool Mover::prepare(MoveLane& lane) noexcept {
  if (lane.stream) {
    return true;
  }
  const Driver& call = driver();
  return call.StreamCreate && call.StreamWaitEvent && call.EventCreate && call.EventRecord &&
         call.StreamCreate(&lane.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && lane.stream;
}

mover::EventHandle Mover::make_event() {
  CUevent made = nullptr;
  return driver().EventCreate(&made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? to_handle(made) : 0;
}

bool Mover::record_event(mover::LaneId lane, mover::EventHandle event) {
  return driver().EventRecord(to_event(event), lane_of(lane).stream) == CUDA_SUCCESS;
}

bool Mover::wait_event(mover::LaneId lane, mover::EventHandle event) {
  return driver().StreamWaitEvent(lane_of(lane).stream, to_event(event), 0) == CUDA_SUCCESS;
}

bool Mover::completed(mover::EventHandle event) {
  return !driver().EventQuery || driver().EventQuery(to_event(event)) != CUDA_ERROR_NOT_READY;
}

CUevent Mover::event_after(MoveLane& lane, std::uint64_t id) { return to_event(lane.ledger.event_after(*this, id)); }

bool Mover::waits_itself(const deepum_command& command) const noexcept {
  const BlockingProbe& calls = command.kind == DEEPUM_COMMAND_DISCARD ? discards_ : prefetches_;
  return !in_lock_step_ && !advises_at_once(command) &&
         (calls.deferral() != Deferral::kDefers || (advises_in_order(command) && !serves_advice()));
}

bool Mover::wait_for(MoveLane& lane, const Requirements& required, bool* again) {
  for (const auto& [of, marker] : required.markers) {
    if (!wait_event(lane.ledger.lane(), to_handle(marker.event))) {
      return false;
    }
    // Recorded anew in the meantime: behind later launches, or even on another stream that has the id now.
    if (!of->still(marker)) {
      *again = true;
      return false;
    }
    lane.ledger.note_wait(to_ref(*of, marker));
  }
  return std::all_of(required.moves.begin(), required.moves.end(),
                     [&](const auto& move) { return lane.ledger.wait(*this, move.first->ledger, move.second); });
}

}  // namespace deepum::runtime
