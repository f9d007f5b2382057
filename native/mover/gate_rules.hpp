// Which gates may be opened, and how far: launches that are held for moves wait until these have
// events, and are opened behind the events; launches that are held for nothing are opened once
// their decisions are there.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "mover_backend.hpp"
#include "records.h"

namespace deepum::mover {

// What the gates ask about moves.
class IssuedMoves {
 public:
  // The events that lie behind what the launch is held for. False: some of it has not been given to
  // the driver yet.
  virtual bool issued(const deepum_command& hold, std::vector<EventHandle>* events) = 0;

 protected:
  ~IssuedMoves() = default;
};

class GateRules {
 public:
  GateRules(MoverBackend& backend, IssuedMoves& moves) noexcept
      : backend_(backend), moves_(moves) {}

  // The first launch that has to wait for moves is where gates begin. Launches from one on that
  // wait for none have no gates, until another is held.
  void hold(const deepum_command& hold);
  // What can be opened, with the decisions for all events up to this one carried out.
  void open(std::uint64_t decided);

 private:
  struct Gate {
    std::uint32_t epoch = 0;  // of the word that was written
    // Sequence: written, or will be behind what the writer waits for.
    std::uint64_t opened = 0;
    std::deque<deepum_command> holds{};  // of launches behind that
  };
  bool open(std::uint32_t stream, Gate& gate, std::uint64_t waited, std::uint64_t decided);
  bool write(std::uint32_t stream, Gate& gate, std::uint64_t sequence);

  MoverBackend& backend_;
  IssuedMoves& moves_;
  std::array<Gate, DEEPUM_MAX_STREAMS> gates_;
  std::vector<EventHandle> events_;
};

}  // namespace deepum::mover
