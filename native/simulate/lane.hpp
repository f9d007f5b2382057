// One direction of one device: the mover's stream, what it has waited for, events behind what was issued on it. As
// native/runtime/move_lane.hpp, with the engine's streams and events.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

#include "markers.hpp"
#include "move_queue.hpp"
#include "um_model/engine.hpp"

namespace deepum::simulate {

class Lane {
 public:
  runtime::MoveQueue queue;
  std::set<std::uint32_t> moved;  // slots, since the stream was last seen empty: a free waits for these moves

  void prepare(um_model::Engine& engine, int device);
  um_model::Stream stream() const { return *stream_; }
  bool has_stream() const { return stream_.has_value(); }

  bool waited(const StreamMarkers* of, const Marker& marker) const;
  bool waited(const Lane* other, std::uint64_t id) const;
  void wait(um_model::Engine& engine, um_model::Host host, const StreamMarkers* of, const Marker& marker);
  void wait(um_model::Engine& engine, um_model::Host host, Lane* other, std::uint64_t id);
  void issued(std::uint64_t id, std::uint64_t bytes, bool counted);  // counted: as outstanding
  // Given to the driver and not known to be complete; `collect` asks what is.
  std::uint64_t outstanding() const { return outstanding_; }
  void collect(um_model::Engine& engine, um_model::Host host);
  std::uint64_t since_event() const { return since_event_; }                                // bytes
  um_model::Event record(um_model::Engine& engine, um_model::Host host, std::uint64_t id);  // behind the last command issued
  struct MoveEvent {
    std::uint64_t id = 0;
    um_model::Event event = 0;
  };
  MoveEvent after(um_model::Engine& engine, um_model::Host host, std::uint64_t id);  // the first event at or behind the command

 private:
  // More than are ever in flight: an event that lies further behind may wait for the launch that waits for it.
  static constexpr std::size_t kEvents = 1u << 16;
  std::optional<um_model::Stream> stream_;
  std::uint64_t last_issued_ = 0;
  std::uint64_t since_event_ = 0;
  std::deque<MoveEvent> events_;  // by rising id
  struct Handed {
    um_model::Event event;  // may have been recorded anew further behind: then it completes later, never earlier
    std::uint64_t bytes;
  };
  std::deque<Handed> handed_;
  std::uint64_t outstanding_ = 0;
  std::uint64_t unrecorded_ = 0;  // of these, behind the last event
  std::unordered_map<const StreamMarkers*, std::uint64_t> waited_;
  std::unordered_map<const Lane*, std::uint64_t> waited_moves_;
};

}  // namespace deepum::simulate
