#include "lane.hpp"

#include <algorithm>

namespace deepum::simulate {

void Lane::prepare(um_model::Engine& engine, int device) {
  if (!stream_) {
    stream_ = engine.add_stream(device);
  }
}

bool Lane::waited(const StreamMarkers* of, const Marker& marker) const {
  const auto found = waited_.find(of);
  return found != waited_.end() && found->second >= marker.sequence;
}

bool Lane::waited(const Lane* other, std::uint64_t id) const {
  if (other->last_issued_ < id) {
    return true;  // it never had that command
  }
  const auto found = waited_moves_.find(other);
  return found != waited_moves_.end() && found->second >= id;
}

void Lane::wait(um_model::Engine& engine, um_model::Host host, const StreamMarkers* of, const Marker& marker) {
  engine.wait(host, *stream_, marker.event);
  waited_[of] = marker.sequence;
}

void Lane::wait(um_model::Engine& engine, um_model::Host host, Lane* other, std::uint64_t id) {
  const MoveEvent behind = other->after(engine, host, id);
  engine.wait(host, *stream_, behind.event);
  waited_moves_[other] = behind.id;
}

void Lane::issued(std::uint64_t id, std::uint64_t bytes, bool counted) {
  last_issued_ = id;
  outstanding_ += counted ? bytes : 0;
  unrecorded_ += counted ? bytes : 0;
  since_event_ += bytes;
}

void Lane::collect(um_model::Engine& engine, um_model::Host host) {
  if (unrecorded_ != 0 && handed_.empty()) {
    record(engine, host, last_issued_);
  }
  for (; !handed_.empty() && engine.completed(handed_.front().event); handed_.pop_front()) {
    outstanding_ -= handed_.front().bytes;
  }
}

um_model::Event Lane::record(um_model::Engine& engine, um_model::Host host, std::uint64_t id) {
  um_model::Event event;
  if (events_.size() == kEvents) {
    event = events_.front().event;
    events_.pop_front();
  } else {
    event = engine.add_event();
  }
  engine.record(host, event, *stream_);
  events_.push_back({id, event});
  if (unrecorded_ != 0) {
    handed_.push_back({event, unrecorded_});
  }
  unrecorded_ = since_event_ = 0;
  return event;
}

Lane::MoveEvent Lane::after(um_model::Engine& engine, um_model::Host host, std::uint64_t id) {
  const auto found = std::ranges::lower_bound(events_, id, {}, &MoveEvent::id);
  if (found != events_.end()) {
    return *found;
  }
  record(engine, host, last_issued_);
  return events_.back();
}

}  // namespace deepum::simulate
