// Whether tensors are better left on the host: iterations take so long with them on the device, and
// so long with kernels that go to them over the link. Only time tells: how much of a tensor a
// kernel touches nobody says.
#pragma once

#include <cstdint>

#include "extras/pace_meter.hpp"
#include "parameters.h"

namespace deepum::core {

class RemoteTrial {
 public:
  enum class Turn { kNone, kPlace, kKeep, kCallBack, kAbandon };

  explicit RemoteTrial(const deepum_trial_parameters& parameters) : parameters_(parameters) {}

  // Iterations have been of that length for so many of them, and nothing is tried.
  bool ready(std::uint64_t iterations) const {
    return phase_ == Phase::kNone && iteration_ > 0 && !over() &&
           position_ - changed_ >= iterations * iteration_;
  }
  bool under_way() const { return phase_ != Phase::kNone; }  // times are wanted
  bool over() const;                                         // nothing will be tried any longer
  // A trial begins. What a launch takes now, in microseconds; 0: not known, unless it is known of
  // the trial before.
  void begin(double pace);
  void launched(std::uint64_t position, std::uint64_t sequence, std::uint64_t iteration);
  void completed(std::uint64_t sequence, std::uint64_t at);  // see PaceMeter
  Turn turn();                                               // what is to be done now, once
  void abandon();                                            // nothing can be said of it

 private:
  enum class Phase { kNone, kBefore, kPlaced };
  void place();
  void end(Turn turn);

  const deepum_trial_parameters& parameters_;
  Phase phase_ = Phase::kNone;
  Turn turn_ = Turn::kNone;
  PaceMeter meter_;
  std::uint64_t position_ = 0;
  std::uint64_t iteration_ = 0;  // launches; 0: not known
  std::uint64_t changed_ = 0;    // launch at which it became that
  std::uint64_t known_at_ = 0;   // launch at which the pace was known; 0: it is not
  double pace_ = 0;              // microseconds a launch
  std::uint32_t changes_ = 0;    // of the length of an iteration
  std::uint32_t trials_ = 0;
};

}  // namespace deepum::core
