// The core's only notion of time. Every component reads it; only Core and IterationMeter advance
// it.
#pragma once

#include <cstdint>

namespace deepum::core {

using LaunchIndex = std::uint64_t;    // launches are counted from 1; 0: none
using EventSequence = std::uint64_t;  // deepum_event_header::sequence; 0: none
using MoveId = std::uint64_t;         // deepum_command::id; 0: none
using Work = std::uint64_t;  // UM blocks that launches touched, each launch counting one more

struct Clock {
  LaunchIndex launch = 0;   // the latest launch
  EventSequence event = 0;  // the event at hand
  Work work = 0;            // a time base that follows kernel cost better than the launch count
  // Launches in an iteration, as estimated by IterationMeter; 0: not known.
  std::uint64_t iteration = 0;
  // Launches in the iteration that the program repeats, by IterationDetector; 0: it does not, yet.
  std::uint64_t period = 0;
};

}  // namespace deepum::core
