// Gates as the mover sees them: it writes a gate's word, on a stream of its own, behind the moves that launches are held for.
#include "driver.hpp"
#include "mover.hpp"

namespace deepum::runtime {

// The first launch that has to wait for moves is where pressure begins.
void Mover::hold_at_gate(const deepum_command& hold) {
  const bool named = hold.stream_mask != 0 && hold.device < DEEPUM_MAX_DEVICES;
  if (named && !ties_streams(hold) && (gates_.used() || (use_device(static_cast<int>(hold.device)) && gates_.begin(current_)))) {
    gate_writers_[static_cast<std::size_t>(__builtin_ctzll(hold.stream_mask))].holds.push_back(hold);
  }
}

// `decided`: all commands that events up to it caused have been taken, and carried out as far as they can be.
void Mover::open_gates(std::uint64_t decided) {
  gates_.set_processed(decided);
  if (!gated()) {
    return;
  }
  for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
    GateWriter& gate = gate_writers_[id];
    const std::uint64_t waited = gates_.last_waiter(id);
    if (waited == 0) {
      gate.holds.clear();
    } else if (!open_gate(id, gate, waited, decided)) {
      return gates_.end("the driver refused to open one");
    }
  }
}

// Launches before the one that is held do not wait for its moves, which may wait for theirs: they are opened first, and always.
bool Mover::open_gate(std::uint32_t id, GateWriter& gate, std::uint64_t waited, std::uint64_t decided) {
  if (const std::uint32_t epoch = gates_.epoch(); epoch != gate.epoch) {
    gate.epoch = epoch;
    gate.opened = 0;
  }
  std::vector<CUevent> events;
  std::uint64_t until = decided;
  for (; !gate.holds.empty(); gate.holds.pop_front()) {
    const deepum_command& hold = gate.holds.front();
    events.clear();
    if (!moves_issued(hold, &events)) {
      until = hold.cause - 1;
      break;
    }
    if (events.empty()) {
      continue;
    }
    if (!write_gate(id, gate, hold.cause - 1)) {
      return false;
    }
    for (const CUevent event : events) {
      if (driver().StreamWaitEvent(gate.stream, event, 0) != CUDA_SUCCESS) {
        return false;
      }
    }
  }
  return waited <= gate.opened || write_gate(id, gate, until);
}

// The events that lie behind what the launch is held for. False: some of it has not been given to the driver yet.
bool Mover::moves_issued(const deepum_command& hold, std::vector<CUevent>* events) {
  const int device = static_cast<int>(hold.device);
  for (const deepum_direction direction : kBringing) {
    MoveLane& lane = devices_[hold.device].lanes[direction];
    if (lane.queue.find(hold.after_move)) {
      return false;
    }
    if (settled_->lane(hold.after_move) == lane_number(device, direction) && use_device(device)) {
      if (CUevent behind = event_after(lane, hold.after_move)) {
        events->push_back(behind);
      }
    }
  }
  return true;
}

bool Mover::write_gate(std::uint32_t id, GateWriter& gate, std::uint64_t sequence) noexcept {
  if (!use_context(gates_.home()) || (!gate.stream && driver().StreamCreate(&gate.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)) {
    return false;
  }
  if (sequence <= gate.opened) {
    return true;
  }
  gate.opened = sequence;
  return gates_.write(gate.stream, id, gate.epoch, sequence);
}

}  // namespace deepum::runtime
