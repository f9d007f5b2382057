#include "gates.hpp"

#include <algorithm>
#include <cassert>

namespace deepum::simulate {

void Gates::launch(std::optional<um_model::Stream> stream, std::uint32_t id, std::uint64_t sequence) {
  if (!used_ || !stream) {
    passed_ = sequence;
    return;
  }
  auto& gate = gates_[id];
  if (!gate) {
    gate.emplace(Gate{engine_.add_word(), engine_.add_stream(0), 0, {}, forgotten_});
  }
  engine_.wait_value(um_model::kProgram, *stream, gate->word, sequence);
}

// A launch that was queued before gates were used has none, but those behind it wait for what it waits for.
void Gates::hold(const deepum_command& command) {
  if (command.stream_mask == 0) {
    return;
  }
  used_ = true;
  if (auto& gate = gates_[static_cast<std::size_t>(__builtin_ctzll(command.stream_mask))]) {
    gate->holds.push_back(command);
  }
}

bool Gates::keeps_all_behind(std::uint64_t sequence) const {
  return used_ && passed_ <= sequence &&
         std::all_of(gates_.begin(), gates_.end(), [&](const auto& gate) { return !gate || gate->opened <= sequence; });
}

// Replays have one device, whose discards are issued in the order of what they follow.
void Gates::follow(std::uint64_t sequence, um_model::Stream stream) {
  assert(follows_.empty() || follows_.back().sequence <= sequence);
  if (follows_.empty() || follows_.back().sequence != sequence || follows_.back().stream != stream) {
    const um_model::Event event = free_events_.empty() ? engine_.add_event() : free_events_.back();
    if (!free_events_.empty()) {
      free_events_.pop_back();
    }
    follows_.push_back({sequence, stream, event});
  }
  engine_.record(mover_, follows_.back().event, stream);
}

void Gates::open(Gate& gate, std::uint64_t sequence) {
  for (; gate.followed < forgotten_ + follows_.size(); ++gate.followed) {
    const Follow& follow = follows_[gate.followed - forgotten_];
    if (follow.sequence >= sequence) {
      break;
    }
    write(gate, follow.sequence);
    engine_.wait(mover_, gate.writer, follow.event);
  }
  write(gate, sequence);
}

void Gates::forget_follows() {
  const auto waited = [&](const auto& gate) { return !gate || gate->followed > forgotten_; };
  for (; !follows_.empty() && std::all_of(gates_.begin(), gates_.end(), waited); ++forgotten_) {
    free_events_.push_back(follows_.front().event);
    follows_.pop_front();
  }
}

void Gates::write(Gate& gate, std::uint64_t sequence) {
  if (sequence > gate.opened) {
    gate.opened = sequence;
    engine_.write_value(mover_, gate.writer, gate.word, sequence);
  }
}

void Gates::open(const Moves& moves) {
  for (auto& gate : gates_) {
    std::uint64_t until = decided_;
    std::vector<um_model::Event> events;
    for (; gate && !gate->holds.empty(); gate->holds.pop_front()) {
      const deepum_command& hold = gate->holds.front();
      events.clear();
      if (!moves(hold, &events)) {
        until = hold.cause - 1;
        break;
      }
      open(*gate, hold.cause - 1);
      for (const um_model::Event event : events) {
        engine_.wait(mover_, gate->writer, event);
      }
    }
    if (gate) {
      open(*gate, until);
    }
  }
  forget_follows();
}

}  // namespace deepum::simulate
