// The mover's thread of a program that runs free: it sleeps until commands come, until a marker
// that it wants has been recorded, or, while a lane's hand-over is full, for half a millisecond,
// and looks at everything then (Mover::sleep of native/runtime/mover.cpp).
#pragma once

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "mover.hpp"

namespace deepum::simulate {

class MoverThread {
 public:
  MoverThread(um_model::Engine& engine, Mover& mover) : engine_(engine), mover_(mover) {}

  // The daemon has decided all up to that event, and written these, at that time, ns, which is no
  // earlier than that of the call before.
  void deliver(double time, std::uint64_t decided, std::span<const deepum_command> commands);
  void marker_recorded(double time);
  // It has looked at all that has been delivered, and is done with it, by that time.
  bool idle(double time) const { return inbox_.empty() && engine_.now(mover_.host()) <= time; }
  Mover::Answers take_answers() { return std::exchange(answers_, {}); }

 private:
  struct Delivered {
    double time;
    std::uint64_t decided;
    std::vector<deepum_command> commands;
  };
  void wake_at(double time);
  void act();

  um_model::Engine& engine_;
  Mover& mover_;
  std::deque<Delivered> inbox_;
  double wakes_at_ = 0;
  std::uint64_t alarm_ = 0;  // the one that counts, 0: none; earlier ones have been replaced
  std::uint64_t alarms_ = 0;
  Mover::Answers answers_;
};

}  // namespace deepum::simulate
