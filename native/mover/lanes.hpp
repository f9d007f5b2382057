// Lanes, and the events that lie on them. A lane is one direction of one device: a queue of
// commands and a stream that carries them out. Definitions only.
#pragma once

#include <cstdint>

#include "records.h"

namespace deepum::mover {

// A lane's number: device * DEEPUM_DIRECTIONS + direction.
using LaneId = std::uint32_t;

constexpr LaneId lane_id(std::uint32_t device, std::uint32_t direction) noexcept {
  return device * DEEPUM_DIRECTIONS + direction;
}
constexpr std::uint32_t lane_device(LaneId lane) noexcept { return lane / DEEPUM_DIRECTIONS; }
constexpr std::uint32_t lane_direction(LaneId lane) noexcept { return lane % DEEPUM_DIRECTIONS; }

// A CUevent, or an event of the model's. 0: no event.
using EventHandle = std::uint64_t;

// A progress marker: an event behind all launches of one of the program's streams up to a sequence.
struct MarkerRef {
  std::uint64_t stream = 0;  // the markers of that stream, as the backend names them
  std::uint64_t sequence = 0;
  EventHandle event = 0;
  // Of the stream's id, which another stream has once this one was destroyed; 0: ids are not used
  // again.
  std::uint32_t incarnation = 0;
  std::uint32_t generation = 0;  // the backend's: which recording of the event this is
  std::uint64_t number = 0;      // the backend's: which of the stream's markers
};

// Events on the streams of lanes.
class LaneEvents {
 public:
  virtual EventHandle make_event() = 0;  // 0: none can be made
  // Behind what is on the lane's stream.
  virtual bool record_event(LaneId lane, EventHandle event) = 0;
  // What is queued on the lane's stream from here on waits for it.
  virtual bool wait_event(LaneId lane, EventHandle event) = 0;
  // True where it cannot be known: waiting longer would not help.
  virtual bool completed(EventHandle event) = 0;

 protected:
  ~LaneEvents() = default;
};

}  // namespace deepum::mover
