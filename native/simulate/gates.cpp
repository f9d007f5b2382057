#include "gates.hpp"

namespace deepum::simulate {

void Gates::launch(std::optional<um_model::Stream> stream, std::uint32_t id, std::uint64_t sequence) {
  if (!used() || !stream) {
    return;
  }
  auto& gate = gates_[id];
  if (!gate) {
    gate.emplace(Gate{engine_.add_word(), engine_.add_stream(0), 0, {}});
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
      write(*gate, hold.cause - 1);
      for (const um_model::Event event : events) {
        engine_.wait(mover_, gate->writer, event);
      }
    }
    if (gate) {
      write(*gate, until);
    }
  }
}

}  // namespace deepum::simulate
