// One direction of one device: a stream of our own, what it has waited for, and events behind what was issued on it. Used by the
// mover thread alone, with the device's context current.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "move_queue.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

class MoveLane {
 public:
  MoveQueue queue;

  bool prepare() noexcept;  // makes the stream if there is none
  CUstream stream() const noexcept { return stream_; }
  void forget_stream() noexcept;  // it ended with its context

  // Does this lane already wait for as much? A stream keeps its order, so that what was waited for once holds from then on.
  bool waited(const StreamMarkers* of, const Marker& marker) const noexcept;
  bool waited(const MoveLane* other, std::uint64_t id) const noexcept;
  bool wait(const Marker& marker) noexcept;
  void note(const StreamMarkers* of, const Marker& marker) { waited_[of] = {marker.incarnation, marker.sequence}; }
  bool wait(MoveLane* other, std::uint64_t id);
  void hold(CUstream stream, std::uint64_t id);  // a stream of the program's, until that command is done

  CUevent event_after(std::uint64_t id);                             // at or behind that command; null: none can be made
  void issued(std::uint64_t id, std::uint64_t bytes, bool counted);  // counted: as outstanding
  bool record(std::uint64_t id);                                     // an event behind the last command issued, whose id this is
  // From here on an event is recorded anew only once it is complete, as far as 65536 go: where launches wait for moves and moves for
  // launches, to wait for a later event than need be may be to wait for oneself.
  void keep_until_complete() noexcept { keeps_until_complete_ = true; }

  // Given to the driver and not known to be complete.
  std::uint64_t outstanding() const noexcept { return outstanding_; }
  std::uint64_t since_event() const noexcept { return since_event_; }  // bytes given behind the last event
  void collect();                                                      // asks the driver what has completed

 private:
  static constexpr std::size_t kEvents = 4096, kMostEvents = 1u << 16;
  struct MoveEvent {
    std::uint64_t id = 0;
    CUevent event = nullptr;
  };
  struct Handed {
    CUevent event;  // may have been recorded anew further behind: then it completes later, never earlier
    std::uint64_t bytes;
  };
  struct Waited {
    std::uint32_t incarnation;
    std::uint64_t sequence;
  };
  const MoveEvent* after(std::uint64_t id);
  CUevent event_to_record();

  CUstream stream_ = nullptr;
  std::uint64_t last_issued_ = 0;
  std::deque<MoveEvent> events_;  // by rising id
  CUevent spare_ = nullptr;       // made, and not recorded
  bool keeps_until_complete_ = false;
  std::unordered_map<const StreamMarkers*, Waited> waited_;
  std::unordered_map<const MoveLane*, std::uint64_t> waited_moves_;
  std::deque<Handed> handed_;
  std::uint64_t outstanding_ = 0;
  std::uint64_t unrecorded_ = 0;   // of these, behind the last event
  std::uint64_t since_event_ = 0;  // all that is behind it
};

}  // namespace deepum::runtime
