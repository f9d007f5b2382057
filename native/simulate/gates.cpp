#include "gates.hpp"

namespace deepum::simulate {

void Gates::launch(std::optional<um_model::Stream> stream, std::uint32_t id,
                   std::uint64_t sequence) {
  if (!wanted() || !stream) {
    return;
  }
  auto& gate = gates_[id];
  if (!gate) {
    gate.emplace(Gate{engine_.add_word(), engine_.add_stream(0)});
  }
  engine_.wait_value(um_model::kProgram, *stream, gate->word, sequence);
}

void Gates::write(std::uint32_t id, std::uint64_t sequence) {
  engine_.write_value(mover_, gates_[id]->writer, gates_[id]->word, sequence);
}

void Gates::wait(std::uint32_t id, um_model::Event event) {
  engine_.wait(mover_, gates_[id]->writer, event);
}

}  // namespace deepum::simulate
