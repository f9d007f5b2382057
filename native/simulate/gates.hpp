// Gates in stream order, as native/runtime/gates.hpp has them: under pressure each launch of a
// program that runs free waits, on its stream and not on the host, until the mover has opened its
// gate (native/mover/gate_rules.hpp). Nothing here is ever late, so that nothing has to open them
// all.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "records.h"
#include "um_model/engine.hpp"

namespace deepum::simulate {

class Gates {
 public:
  Gates(um_model::Engine& engine, um_model::Host mover) : engine_(engine), mover_(mover) {}

  bool used() const { return used_; }                   // there has been something to wait for
  bool wanted() const { return used_ && !suspended_; }  // a new launch has one
  // The program's side: the launch is about to be queued on that stream, or on one of which nothing
  // is known yet.
  void launch(std::optional<um_model::Stream> stream, std::uint32_t id, std::uint64_t sequence);

  // The mover's side. A launch that was queued before gates were used has none, but those behind it
  // wait for what it waits for.
  void begin() { used_ = true; }
  void suspend(bool suspended) { suspended_ = suspended; }
  bool has(std::uint32_t id) const { return gates_[id].has_value(); }  // a launch has waited at it
  void write(std::uint32_t id, std::uint64_t sequence);
  // What is written from here on lies behind the event.
  void wait(std::uint32_t id, um_model::Event event);
  // The decisions for all launches up to this one are there.
  void decided(std::uint64_t sequence) { decided_ = sequence; }
  // As the runtime's, but for the time that the mover's calls take.
  std::uint64_t processed() const { return decided_; }

 private:
  struct Gate {
    um_model::Word word;
    um_model::Stream writer;
  };

  um_model::Engine& engine_;
  um_model::Host mover_;
  bool used_ = false;
  bool suspended_ = false;
  std::uint64_t decided_ = 0;
  std::array<std::optional<Gate>, DEEPUM_MAX_STREAMS> gates_;
};

}  // namespace deepum::simulate
