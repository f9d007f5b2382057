#include "mover.hpp"

#include <algorithm>

namespace deepum::simulate {
namespace {

using um_model::kProgram;
using um_model::Range;

constexpr int kDirections = DEEPUM_DIRECTIONS;
constexpr std::size_t kMostInBatch = 64;  // native/runtime/move_calls.hpp

int lane_number(int device, int direction) { return device * kDirections + direction; }

// The model counts events from 0.
mover::EventHandle to_handle(um_model::Event event) { return mover::EventHandle{event} + 1; }
um_model::Event to_event(mover::EventHandle handle) { return static_cast<um_model::Event>(handle - 1); }

mover::MarkerRef to_ref(const StreamMarkers& of, const Marker& marker) {
  return {reinterpret_cast<std::uintptr_t>(&of), marker.sequence, to_handle(marker.event)};
}

}  // namespace

Mover::Mover(um_model::Engine& engine, int devices, const Mode& mode, Markers& markers, Places& places)
    : engine_(engine),
      markers_(markers),
      places_(places),
      mode_(mode),
      host_(mode.lock_step ? engine.add_helper() : engine.add_thread()),
      gates_(engine, host_),
      devices_(static_cast<std::size_t>(devices)) {
  for (std::uint32_t device = 0; device < devices_.size(); ++device) {
    for (std::uint32_t direction = 0; direction < DEEPUM_DIRECTIONS; ++direction) {
      devices_[device].lanes[direction].ledger = mover::LaneLedger(mover::lane_id(device, direction), mover::LaneLedger::kMostEvents);
    }
  }
}

void Mover::prepare(Lane& lane, int device) {
  if (!lane.stream) {
    lane.stream = engine_.add_stream(device);
  }
}

mover::EventHandle Mover::make_event() { return to_handle(engine_.add_event()); }

bool Mover::record_event(mover::LaneId lane, mover::EventHandle event) {
  engine_.record(host_, to_event(event), *lane_of(lane).stream);
  return true;
}

bool Mover::wait_event(mover::LaneId lane, mover::EventHandle event) {
  engine_.wait(host_, *lane_of(lane).stream, to_event(event));
  return true;
}

bool Mover::completed(mover::EventHandle event) { return engine_.completed(to_event(event)); }

um_model::Event Mover::event_after(Lane& lane, std::uint64_t id) { return to_event(lane.ledger.event_after(*this, id)); }

void Mover::accept(const deepum_command& given) {
  deepum_command command = given;
  if (brings(command) && !mode_.fetches) {
    command.block_count = 0;  // only waits
  }
  fresh_ = true;
  if (command.kind == DEEPUM_COMMAND_HOLD) {
    settled_->settle(command.id, mover::SettledMoves::kNowhere);
    if (mode_.gates && command.device < devices_.size()) {
      gates_.hold(command);
    }
    if (mode_.lock_step && command.device < devices_.size() && holds_.size() < DEEPUM_MAX_STREAMS) {
      holds_.push_back(command);
      holds_launches_ = true;
    }
    return;
  }
  if (command.device >= devices_.size()) {
    settled_->settle(command.id, mover::SettledMoves::kNowhere);
    return;
  }
  devices_[command.device].lanes[direction_of(command.kind)].queue.push(command);
  ++waiting_;
  if (command.after_move == 0) {
    return;
  }
  for (Device& device : devices_) {
    for (Lane& lane : device.lanes) {
      if (mover::Move* const awaited = lane.queue.find(command.after_move)) {
        awaited->awaited = true;
      }
    }
  }
}

void Mover::round(const Answer& answer) {
  fresh_ = wants_marker_ = looks_again_soon_ = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
      for (const int direction : {DEEPUM_DIRECTION_DISCARD, DEEPUM_DIRECTION_DROP, DEEPUM_DIRECTION_OUT, DEEPUM_DIRECTION_POPULATE,
                                  DEEPUM_DIRECTION_IN, DEEPUM_DIRECTION_COPY, DEEPUM_DIRECTION_COLLAPSE}) {
        if (!devices_[static_cast<std::size_t>(device)].lanes[direction].queue.empty()) {
          progress |= advance(device, direction, answer);
        }
      }
    }
  }
  hold_launches();
  gates_.open([this](const deepum_command& hold, std::vector<um_model::Event>* events) {
    for (const int direction : kBringing) {
      Lane& lane = devices_[hold.device].lanes[direction];
      if (lane.queue.find(hold.after_move) != nullptr) {
        return false;
      }
      if (settled_->lane(hold.after_move) == lane_number(static_cast<int>(hold.device), direction)) {
        events->push_back(event_after(lane, hold.after_move));
      }
    }
    return true;
  });
}

void Mover::hold_launches() {
  for (const deepum_command& hold : holds_) {
    const auto& stream = markers_[static_cast<std::size_t>(__builtin_ctzll(hold.stream_mask | 1ull << 63))].stream();
    for (const int direction : kBringing) {
      Lane& lane = devices_[hold.device].lanes[direction];
      if (stream && lane.queue.find(hold.after_move) == nullptr && settled_->lane(hold.after_move) == lane_number(hold.device, direction)) {
        engine_.wait(host_, *stream, event_after(lane, hold.after_move));
      }
    }
  }
  holds_.clear();
}

bool Mover::advance(int device, int direction, const Answer& answer) {
  Lane& lane = devices_[static_cast<std::size_t>(device)].lanes[direction];
  bool progress = false;
  while (!lane.queue.empty()) {
    if (direction == DEEPUM_DIRECTION_DISCARD ? !issue_discard(device, answer) : !issue(device, direction, answer)) {
      return progress;
    }
    progress = true;
  }
  return progress;
}

bool Mover::issue(int device, int direction, const Answer& answer) {
  Lane& lane = devices_[static_cast<std::size_t>(device)].lanes[direction];
  const deepum_command head = lane.queue[0].command;
  Requirements required;
  if (!requirements(device, direction, head, &required)) {
    return false;
  }
  if (head.kind == DEEPUM_COMMAND_ADVISE && (head.advice < 1 || head.advice > 6)) {  // CUmem_advise counts from 1
    finish(lane, head.id, mover::SettledMoves::kNowhere);
    answer(head, DEEPUM_MOVED_FAILED);
    return true;
  }
  prepare(lane, device);
  if (waits(lane, head, required)) {
    return false;
  }
  if (only_waits(head)) {
    wait_for(lane, required);
    const bool holds = mode_.lock_step || gates_.used();
    finish(lane, head.id, holds ? lane_number(device, direction) : mover::SettledMoves::kNowhere);
    if (!holds) {
      return true;
    }
    lane.ledger.issued(head.id, 0, false);  // its launch is held all the same
    if (holds_launches_) {
      lane.ledger.record(*this, head.id);
    }
    return true;
  }
  const auto range = places_.blocks(head.slot, head.generation, head.first_block, head.block_count);
  if (!range) {
    finish(lane, head.id, mover::SettledMoves::kNowhere);
    answer(head, DEEPUM_MOVED_STALE);
    return true;
  }
  if (!mode_.lock_step && full(lane, range->bytes)) {
    looks_again_soon_ = true;
    return false;
  }
  wait_for(lane, required);
  std::vector<Range> spans{*range};
  const bool at_once = advises_at_once(head);
  std::size_t commands = 1;
  if (at_once) {
    advise(host_, spans, advice_before(head));
  } else {
    commands = gather(device, direction, &spans);
    carry_out(lane, head, spans);
  }
  bool awaited = false;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < commands; ++i) {
    last = lane.queue[0].command.id;
    awaited |= lane.queue[0].awaited;
    lane.moved.insert(lane.queue[0].command.slot);
    finish(lane, last, at_once ? mover::SettledMoves::kNowhere : lane_number(device, direction));
  }
  if (at_once) {
    return true;
  }
  std::uint64_t bytes = 0;
  for (const Range& span : spans) {
    bytes += span.bytes;
  }
  lane.ledger.issued(last, bytes, !mode_.lock_step && !gates_.used());
  // With gates an event that lies behind later moves as well may wait for a launch that its gate keeps back until the event has come.
  if (awaited || gates_.used() || lane.ledger.since_event() >= (mode_.lock_step ? mover::kEventBytes : mode_.handover_bytes / 16) ||
      (holds_launches_ && brings(direction))) {
    lane.ledger.record(*this, last);
  }
  return true;
}

// In stream order. The driver has no advice in stream order: where launches wait for moves, the server gives it while the stream stands
// still.
void Mover::carry_out(Lane& lane, const deepum_command& command, const std::vector<Range>& spans) {
  const auto serve = [&](const AdviceList& advice) {
    if (!serves_advice()) {
      advise(host_, spans, advice);
    } else if (!advice.empty()) {
      engine_.serve(host_, *lane.stream, [this, spans, advice] { advise(um_model::kServer, spans, advice); });
    }
  };
  serve(advice_before(command));
  if (moves(command)) {
    engine_.prefetch(host_, *lane.stream, spans, brings(command) ? command.device : um_model::kCpu);
  }
  serve(advice_after(command));
}

void Mover::advise(um_model::Host host, const std::vector<Range>& spans, const AdviceList& advice) {
  for (const Advice& each : advice) {
    for (const Range& span : spans) {
      engine_.advise(host, {&span, 1}, static_cast<um_model::Advice>(each.what - 1), each.location);  // CUmem_advise counts from 1
    }
  }
}

bool Mover::issue_discard(int device, const Answer& answer) {
  Lane& lane = devices_[static_cast<std::size_t>(device)].lanes[DEEPUM_DIRECTION_DISCARD];
  const deepum_command command = lane.queue[0].command;
  Requirements required;
  if (!requirements(device, DEEPUM_DIRECTION_DISCARD, command, &required)) {
    return false;
  }
  const auto range = places_.blocks(command.slot, command.generation, command.first_block, command.block_count);
  if (!range) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_STALE);
    return true;
  }
  prepare(lane, device);
  if (discards_forbidden_) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_REFUSED);
    return true;
  }
  if (waits(lane, command, required)) {
    return false;
  }
  mover::DiscardMap& discards = devices_[static_cast<std::size_t>(device)].discards;
  if (!places_.may_discard(command.slot, *range, command.cause) || !discards.propose(range->address, range->bytes, command.id)) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_CANCELLED);
    return true;
  }
  wait_for(lane, required);
  engine_.discard(host_, *lane.stream, {&*range, 1}, um_model::kCpu, false);
  lane.moved.insert(command.slot);
  lane.ledger.issued(command.id, 0, false);
  last_discard_ = event_after(lane, command.id);
  discards.given(range->address, command.id, to_handle(*last_discard_));
  finish(lane, command.id, lane_number(device, DEEPUM_DIRECTION_DISCARD));
  return true;
}

std::size_t Mover::gather(int device, int direction, std::vector<Range>* spans) {
  const Lane& lane = devices_[static_cast<std::size_t>(device)].lanes[direction];
  const deepum_command& head = lane.queue[0].command;
  std::size_t count = 1;
  std::uint64_t bytes = spans->front().bytes;
  const auto room = [&](std::uint64_t more) {
    return mode_.lock_step || gates_.used() ? lane.ledger.since_event() + bytes < mover::kEventBytes
                                            : lane.ledger.outstanding() + bytes + more <= mode_.handover_bytes;
  };
  for (; count < lane.queue.size() && count < 4 * kMostInBatch && room(0); ++count) {
    const deepum_command& next = lane.queue[count].command;
    Requirements more;
    if ((lane.queue[count - 1].awaited && !waits_itself(head)) || next.kind != head.kind || next.advice != head.advice ||
        next.location != head.location || (mode_.lock_step && next.cause != head.cause) || (advises_in_order(next) && !serves_advice()) ||
        next.block_count == 0 || !requirements(device, direction, next, &more) || !(more.empty() || (waits_itself(head) && done(more)))) {
      break;
    }
    const auto range = places_.blocks(next.slot, next.generation, next.first_block, next.block_count);
    if (!range || !room(range->bytes)) {
      break;
    }
    bytes += range->bytes;
    Range& last = spans->back();
    if (last.address + last.bytes == range->address && next.slot == lane.queue[count - 1].command.slot) {
      last.bytes += range->bytes;
    } else if (spans->size() < kMostInBatch) {
      spans->push_back(*range);
    } else {
      break;
    }
  }
  return count;
}

bool Mover::requirements(int device, int direction, const deepum_command& command, Requirements* found) {
  const Lane& lane = devices_[static_cast<std::size_t>(device)].lanes[direction];
  for (std::uint64_t mask = command.after_sequence != 0 ? command.stream_mask : 0; mask != 0; mask &= mask - 1) {
    StreamMarkers& stream = markers_[static_cast<std::size_t>(__builtin_ctzll(mask))];
    Marker marker;
    Cover cover = stream.cover(command.after_sequence, &marker);
    // In lock-step the launching thread waits for this round, so that the marker may as well be recorded here and now.
    if (cover == Cover::not_yet && mode_.lock_step && stream.unmarked() && stream.record(engine_, host_)) {
      cover = stream.cover(command.after_sequence, &marker);
    }
    if (cover == Cover::not_yet) {
      wants_marker_ = true;
      return false;
    }
    if (cover == Cover::marker && !lane.ledger.waits_for(to_ref(stream, marker))) {
      found->markers.emplace_back(&stream, marker);
    }
  }
  if (command.after_move == 0 || command.after_move >= command.id) {
    return true;
  }
  for (Device& each : devices_) {
    for (Lane& other : each.lanes) {
      if (&other != &lane && other.queue.find(command.after_move) != nullptr) {
        return false;
      }
    }
  }
  const int where = settled_->lane(command.after_move);
  for (int i = 0; i < kDirections && where != mover::SettledMoves::kNowhere; ++i) {
    const int number = where == mover::SettledMoves::kLongAgo ? lane_number(device, i) : where;
    Lane& other = devices_[static_cast<std::size_t>(number / kDirections)].lanes[number % kDirections];
    if (&other != &lane && !lane.ledger.waits_for(other.ledger, command.after_move)) {
      found->moves.emplace_back(&other, command.after_move);
    }
    if (where != mover::SettledMoves::kLongAgo) {
      break;
    }
  }
  return true;
}

void Mover::wait_for(Lane& lane, const Requirements& required) {
  for (const auto& [of, marker] : required.markers) {
    engine_.wait(host_, *lane.stream, marker.event);
    lane.ledger.note_wait(to_ref(*of, marker));
  }
  for (const auto& [other, id] : required.moves) {
    lane.ledger.wait(*this, other->ledger, id);
  }
}

bool Mover::waits_itself(const deepum_command& command) const {
  const bool discards = command.kind == DEEPUM_COMMAND_DISCARD;
  return !advises_at_once(command) &&
         mode_.blocking >= (discards ? um_model::Blocking::kPrefetchesAndDiscards : um_model::Blocking::kPrefetches);
}

bool Mover::waits(Lane& lane, const deepum_command& command, const Requirements& required) {
  const bool waits =
      !mode_.lock_step && (waits_itself(command) || (advises_in_order(command) && !serves_advice())) && !reached(lane, required);
  looks_again_soon_ |= waits;
  return waits;
}

bool Mover::reached(Lane& lane, const Requirements& required) { return done(required) && engine_.completed_stream(*lane.stream); }

bool Mover::done(const Requirements& required) {
  return std::all_of(required.markers.begin(), required.markers.end(),
                     [&](const auto& each) { return engine_.completed(each.second.event); }) &&
         std::all_of(required.moves.begin(), required.moves.end(),
                     [&](const auto& each) { return engine_.completed(event_after(*each.first, each.second)); });
}

bool Mover::full(Lane& lane, std::uint64_t bytes) {
  const auto over = [&] {
    return !gates_.used() && lane.ledger.outstanding() != 0 && lane.ledger.outstanding() + bytes > mode_.handover_bytes;
  };
  if (over()) {
    lane.ledger.collect(*this);
  }
  return over();
}

void Mover::finish(Lane& lane, std::uint64_t id, int where) {
  settled_->settle(id, where);
  lane.queue.pop();
  --waiting_;
}

// --- Discards, seen from the program

void Mover::use_after_discards(Range range) {
  for (Device& device : devices_) {
    const mover::DiscardMap::Awaited awaited = device.discards.latest(range.address, range.bytes);
    if (awaited.id == 0) {
      continue;
    }
    for (const StreamMarkers& stream : markers_) {
      if (stream.stream()) {
        engine_.wait(kProgram, *stream.stream(), to_event(awaited.event));
      }
    }
    device.discards.ordered(awaited.id);
  }
}

void Mover::wait_for_discards(Range range) {
  for (Device& device : devices_) {
    if (const mover::DiscardMap::Awaited awaited = device.discards.latest(range.address, range.bytes); awaited.id != 0) {
      engine_.synchronise(kProgram, to_event(awaited.event));
    }
    device.discards.forget(range.address, range.bytes);
  }
}

void Mover::follow_discards(um_model::Stream stream) {
  if (last_discard_) {
    engine_.wait(kProgram, stream, *last_discard_);
  }
}

void Mover::wait_for_moves(std::uint32_t slot, std::uint32_t device) {
  if (device >= devices_.size()) {
    return;
  }
  for (Lane& lane : devices_[device].lanes) {
    if (lane.stream && lane.moved.contains(slot)) {
      engine_.synchronise_stream(kProgram, *lane.stream);
      lane.moved.clear();
    }
  }
}

}  // namespace deepum::simulate
