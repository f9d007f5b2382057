// What is known of one lane's stream: the events on it, by the command that each lies behind; what
// it waits for already; how many bytes the driver has of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "lanes.hpp"

namespace deepum::mover {

class LaneLedger {
 public:
  static constexpr std::size_t kEvents = 4096, kMostEvents = 1u << 16;

  // So many events are kept before one is recorded anew, kMostEvents at most.
  explicit LaneLedger(LaneId lane, std::size_t events = kEvents) noexcept
      : lane_(lane), events_kept_(events) {}

  LaneId lane() const noexcept { return lane_; }
  void forget_stream() noexcept;  // it ended with its context

  // Does the lane already wait for as much? A stream keeps its order, so that one wait holds for
  // all that comes later.
  bool waits_for(const MarkerRef& marker) const noexcept;
  bool waits_for(const LaneLedger& other, std::uint64_t id) const noexcept;
  void note_wait(const MarkerRef& marker) {
    markers_[marker.stream] = {marker.incarnation, marker.sequence};
  }
  // For that command of the other lane.
  bool wait(LaneEvents& events, LaneLedger& other, std::uint64_t id);

  // The lane's latest command up to that id of which it is not known that it is complete; 0: none.
  // Where one event lies behind several commands, the id itself may stand for it.
  std::uint64_t latest_until(std::uint64_t id) const noexcept;

  // The commands from `first` to `id` were given to the driver. `counted`: their bytes are
  // outstanding from here on.
  void issued(std::uint64_t first, std::uint64_t id, std::uint64_t bytes, bool counted) noexcept;
  void issued(std::uint64_t id, std::uint64_t bytes, bool counted) noexcept {
    issued(id, id, bytes, counted);
  }
  // An event behind the last command issued, whose id this is.
  bool record(LaneEvents& events, std::uint64_t id);
  // The first one at or behind that command; 0: none can be made.
  EventHandle event_after(LaneEvents& events, std::uint64_t id);
  // From here on an event is recorded anew only once it is complete, as far as kMostEvents go:
  // where launches wait for moves and moves for launches, to wait for a later event than need be
  // may be to wait for oneself.
  void keep_until_complete() noexcept { keeps_until_complete_ = true; }

  // Counted bytes that are not known to be complete.
  std::uint64_t outstanding() const noexcept { return outstanding_; }
  // Bytes issued behind the last event.
  std::uint64_t since_event() const noexcept { return since_event_; }
  // Finds out what has completed.
  void collect(LaneEvents& events);

 private:
  struct MoveEvent {
    std::uint64_t first = 0, id = 0;  // of the commands since the event before it
    EventHandle event = 0;
  };
  struct HandedOver {
    // May have been recorded anew further behind: then it completes later, never earlier.
    EventHandle event;
    std::uint64_t bytes;
  };
  struct Position {
    std::uint32_t incarnation;
    std::uint64_t sequence;
  };
  const MoveEvent* first_after(LaneEvents& events, std::uint64_t id);
  EventHandle event_to_record(LaneEvents& events);

  LaneId lane_;
  std::size_t events_kept_;
  std::uint64_t last_issued_ = 0;       // id
  std::uint64_t first_unrecorded_ = 0;  // id, of those behind the last event; 0: there are none
  std::deque<MoveEvent> events_;        // by rising id
  std::uint64_t last_forgotten_ = 0;    // id: behind it, an event was recorded anew further behind
  EventHandle spare_ = 0;               // made, and not recorded
  bool keeps_until_complete_ = false;
  std::unordered_map<std::uint64_t, Position> markers_;  // the latest wait, by MarkerRef::stream
  // The id behind which the latest wait lies, by lane.
  std::unordered_map<LaneId, std::uint64_t> moves_;
  std::deque<HandedOver> handed_over_;
  std::uint64_t outstanding_ = 0;
  std::uint64_t unrecorded_ = 0;   // of the outstanding bytes, those behind the last event
  std::uint64_t since_event_ = 0;  // all bytes behind it
};

}  // namespace deepum::mover
