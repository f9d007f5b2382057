// Whether the program is being learned: launches are new, or come otherwise than predicted, or did
// so within the last two iterations, as far as these are known, and some launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "clock.hpp"
#include "parameters.h"

namespace deepum::core {

class LearningMonitor {
 public:
  LearningMonitor(const Clock& now, const deepum_iteration_parameters& parameters)
      : now_(now), parameters_(parameters) {}
  void launched(bool surprise) {
    if (surprise) {
      surprised_ = now_.launch;
      longest_period_ = 0;
    }
    taken_at_ = std::exchange(taken_lately_, false) ? now_.launch : taken_at_;
  }
  // An iteration is taken to be as long as the longest way back to the same launch while faults are
  // wanted anyway: what comes once in a long time does not ask for them by that.
  void observe_period(std::uint64_t period) { longest_period_ = std::max(longest_period_, period); }
  // The driver was seen to have taken blocks.
  void block_taken() { taken_lately_ = true; }

  bool learning() const {
    return now_.launch - surprised_ <= parameters_.settled_after + 2 * longest_period_;
  }
  bool lost_blocks_lately() const { return taken_at_ != 0 && lately(taken_at_); }
  // Within the latest two iterations and `settled_after` launches.
  bool lately(LaunchIndex launch) const {
    return now_.launch - launch <= parameters_.settled_after + 2 * now_.iteration;
  }

 private:
  const Clock& now_;
  const deepum_iteration_parameters& parameters_;
  LaunchIndex surprised_ = 0;         // the latest launch that was new or not predicted,
  std::uint64_t longest_period_ = 0;  // and the longest way back to the same launch since
  // The latest launch before which blocks were seen to have been taken; 0: none.
  LaunchIndex taken_at_ = 0;
  bool taken_lately_ = false;  // since the latest launch
};

}  // namespace deepum::core
