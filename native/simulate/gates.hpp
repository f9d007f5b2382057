// Gates in stream order, as native/runtime/gates.hpp has them: under pressure each launch of a program that runs free waits, on its stream
// and not on the host, until the mover has opened its gate. Nothing here is ever late, so that nobody has to open them all.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "records.h"
#include "um_model/engine.hpp"

namespace deepum::simulate {

class Gates {
 public:
  Gates(um_model::Engine& engine, um_model::Host mover) : engine_(engine), mover_(mover) {}

  bool used() const { return used_; }  // there has been something to wait for
  // The program's side: the launch is about to be queued on that stream, or on one of which nothing is known yet.
  void launch(std::optional<um_model::Stream> stream, std::uint32_t id, std::uint64_t sequence);

  // The mover's side.
  void hold(const deepum_command& command);  // DEEPUM_COMMAND_HOLD
  // The decisions for all launches up to this one are there.
  void decided(std::uint64_t sequence) { decided_ = sequence; }
  std::uint64_t processed() const { return decided_; }  // as the runtime's, but for the time that the mover's calls take
  // Opens what can be. `moves`: false: some of what this launch waits for has not been issued; else the events that lie behind it.
  using Moves = std::function<bool(const deepum_command& hold, std::vector<um_model::Event>* events)>;
  void open(const Moves& moves);

 private:
  struct Gate {
    um_model::Word word;
    um_model::Stream writer;
    std::uint64_t opened = 0;  // written, or will be behind what has been issued
    std::deque<deepum_command> holds;
  };
  void write(Gate& gate, std::uint64_t sequence);

  um_model::Engine& engine_;
  um_model::Host mover_;
  bool used_ = false;
  std::uint64_t decided_ = 0;
  std::array<std::optional<Gate>, DEEPUM_MAX_STREAMS> gates_;
};

}  // namespace deepum::simulate
