#include "gate_rules.hpp"

namespace deepum::mover {

void GateRules::hold(const deepum_command& hold) {
  const bool waits = hold.stream_mask != 0;
  if (backend_.gates_used()) {
    backend_.suspend_gates(!waits);
  }
  if (waits && (backend_.gates_used() || backend_.begin_gates(hold.device))) {
    gates_[static_cast<std::size_t>(__builtin_ctzll(hold.stream_mask))].holds.push_back(hold);
  }
}

void GateRules::open(std::uint64_t decided) {
  backend_.set_processed(decided);
  if (!backend_.gates_used()) {
    return;
  }
  for (std::uint32_t stream = 0; stream < DEEPUM_MAX_STREAMS; ++stream) {
    Gate& gate = gates_[stream];
    const std::uint64_t waited = backend_.last_waiter(stream);
    if (waited == 0) {
      gate.holds.clear();
    } else if (!open(stream, gate, waited, decided)) {
      return backend_.end_gates("the driver refused to open one");
    }
  }
}

// Launches before the one that is held do not wait for its moves, which may wait for theirs: they
// are opened first, and always.
bool GateRules::open(std::uint32_t stream, Gate& gate, std::uint64_t waited,
                     std::uint64_t decided) {
  if (const std::uint32_t epoch = backend_.gate_epoch(); epoch != gate.epoch) {
    gate.epoch = epoch;
    gate.opened = 0;
  }
  std::uint64_t until = decided;
  for (; !gate.holds.empty(); gate.holds.pop_front()) {
    const deepum_command& hold = gate.holds.front();
    events_.clear();
    if (!moves_.issued(hold, &events_)) {
      until = hold.cause - 1;
      break;
    }
    if (events_.empty()) {
      continue;
    }
    if (!write(stream, gate, hold.cause - 1)) {
      return false;
    }
    for (const EventHandle event : events_) {
      if (!backend_.gate_waits(stream, event)) {
        return false;
      }
    }
  }
  return waited <= gate.opened || write(stream, gate, until);
}

bool GateRules::write(std::uint32_t stream, Gate& gate, std::uint64_t sequence) {
  if (sequence <= gate.opened) {
    return true;
  }
  gate.opened = sequence;
  return backend_.write_gate(stream, gate.epoch, sequence);
}

}  // namespace deepum::mover
