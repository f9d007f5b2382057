// Gates in stream order: under pressure each launch of a program that runs free waits, on its stream and not on the host, until the mover
// has opened its gate. A gate is a word for each stream: launches up to its value may start. The mover writes it, by a stream of its own,
// behind the moves that the launch was held for; launches that wait for none are opened once their decisions are there.
//
// Nothing waits for what is behind a gate that waits for it: a launch's moves wait for launches before it alone, each behind a marker of
// its own, and for moves of an earlier id.
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
  // The launches behind that event, all of them, have closed gates.
  bool keeps_all_behind(std::uint64_t sequence) const;
  // The launches behind that event of the program's will wait as well for what is on this stream of the mover's by now. Those before it do
  // not: it may wait for them.
  void follow(std::uint64_t sequence, um_model::Stream stream);
  // Opens what can be. `moves`: false: some of what this launch waits for has not been issued; else the events that lie behind it.
  using Moves = std::function<bool(const deepum_command& hold, std::vector<um_model::Event>* events)>;
  void open(const Moves& moves);

 private:
  struct Gate {
    um_model::Word word;
    um_model::Stream writer;
    std::uint64_t opened;  // written, or will be behind what has been issued
    std::deque<deepum_command> holds;
    std::uint64_t followed = 0;  // of `follows_`, counted from the first ever
  };
  struct Follow {
    std::uint64_t sequence;  // behind which launches wait
    um_model::Stream stream;
    um_model::Event event;
  };
  void open(Gate& gate, std::uint64_t sequence);
  void write(Gate& gate, std::uint64_t sequence);
  void forget_follows();

  um_model::Engine& engine_;
  um_model::Host mover_;
  bool used_ = false;
  std::uint64_t decided_ = 0;
  std::uint64_t passed_ = 0;  // the latest launch that was queued without a gate
  std::array<std::optional<Gate>, DEEPUM_MAX_STREAMS> gates_;
  // In the order of their sequences, with events of their own: those of a lane are recorded anew before a gate opens that waits for one.
  std::deque<Follow> follows_;
  std::uint64_t forgotten_ = 0;  // follows that all gates have waited for
  std::vector<um_model::Event> free_events_;
};

}  // namespace deepum::simulate
