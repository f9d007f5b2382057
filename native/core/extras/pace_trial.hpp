// Whether clean copies pay for this program on this machine: iterations take so long with them and
// so long without, and the better of the two is what goes on. What a duplicate saves in one
// direction of the link may cost more in the other, which only time tells.
#pragma once

#include <cstdint>

#include "extras/pace_meter.hpp"
#include "parameters.h"

namespace deepum::core {

class PaceTrial {
 public:
  explicit PaceTrial(const deepum_trial_parameters& parameters) : parameters_(parameters) {}
  bool on() const { return phase_ == Phase::kWith || phase_ == Phase::kBetterWith; }
  bool over() const { return phase_ == Phase::kBetterWith || phase_ == Phase::kBetterWithout; }
  // What is left and copied now tells what will be: not where it is tried what comes of leaving
  // copies out, nor soon after.
  bool representative() const {
    return !(phase_ == Phase::kWithout || (phase_ == Phase::kBetterWith && position_ < relearned_));
  }
  // Times are wanted: clean copies are made or used, and the GPU's time is told.
  bool under_way() const {
    return !over() && meter_.has_times() && (phase_ == Phase::kWithout || copied_ != copies_);
  }
  // Microseconds a launch of what was just found better; 0: not known.
  double pace() const { return over() && position_ < relearned_ ? pace_ : 0; }

  // A launch, the `position`-th, of an iteration of so many (0: not known); `copied`: bytes that
  // were copied out ahead or dropped so far.
  void launched(std::uint64_t position, std::uint64_t sequence, std::uint64_t iteration,
                std::uint64_t copied);
  // All launches of a stream up to that sequence had completed at that time of the GPU, in
  // microseconds; 0: not known.
  void completed(std::uint64_t sequence, std::uint64_t at);
  void forget() { meter_.forget(); }  // launches or times were missed

 private:
  enum class Phase { kWith, kWithout, kBetterWith, kBetterWithout };
  void begin(Phase phase, std::uint64_t settling);
  void end(double pace);
  void decide(Phase phase);

  const deepum_trial_parameters& parameters_;
  Phase phase_ = Phase::kWith;
  PaceMeter meter_;
  std::uint64_t position_ = 0;
  std::uint64_t iteration_ = 0;  // launches, when it began; 0: it has not
  std::uint64_t relearned_ = 0;  // launch by which what leaves is as it was again
  double pace_ = 0;              // with copies, then the better one
  std::uint64_t copies_ = 0;     // bytes, when the phase began,
  std::uint64_t copied_ = 0;     // and so far
  std::uint32_t changes_ = 0;    // of the length of an iteration
};

}  // namespace deepum::core
