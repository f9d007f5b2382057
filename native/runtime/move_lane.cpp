#include "move_lane.hpp"

#include <algorithm>

#include "driver.hpp"

namespace deepum::runtime {

bool MoveLane::prepare() noexcept {
  if (stream_) {
    return true;
  }
  const Driver& call = driver();
  return call.StreamCreate && call.StreamWaitEvent && call.EventCreate && call.EventRecord &&
         call.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && stream_;
}

void MoveLane::forget_stream() noexcept {
  stream_ = nullptr;
  last_issued_ = 0;
  events_made_ = 0;
  std::fill_n(events_.get(), kEvents, MoveEvent{});
  waited_.clear();
  waited_moves_.clear();
  handed_.clear();
  outstanding_ = unrecorded_ = since_event_ = 0;
}

bool MoveLane::waited(const StreamMarkers* of, const Marker& marker) const noexcept {
  const auto found = waited_.find(of);
  if (found == waited_.end() || found->second.incarnation < marker.incarnation) {
    return false;
  }
  // Whoever waited for a later stream of that id has waited for the earlier ones, whose last markers come with its own.
  return found->second.incarnation > marker.incarnation || found->second.sequence >= marker.sequence;
}

bool MoveLane::waited(const MoveLane* other, std::uint64_t id) const noexcept {
  if (other->last_issued_ == 0) {
    return true;
  }
  const auto found = waited_moves_.find(other);
  return found != waited_moves_.end() && found->second >= std::min(id, other->last_issued_);
}

bool MoveLane::wait(const Marker& marker) noexcept { return driver().StreamWaitEvent(stream_, marker.event, 0) == CUDA_SUCCESS; }

bool MoveLane::wait(MoveLane* other, std::uint64_t id) {
  const MoveEvent* behind = other->after(std::min(id, other->last_issued_));
  if (!behind || driver().StreamWaitEvent(stream_, behind->event, 0) != CUDA_SUCCESS) {
    return false;
  }
  waited_moves_[other] = behind->id;
  return true;
}

void MoveLane::hold(CUstream stream, std::uint64_t id) noexcept {
  if (const MoveEvent* behind = after(id)) {
    driver().StreamWaitEvent(stream, behind->event, 0);
  }
}

CUevent MoveLane::event_after(std::uint64_t id) noexcept {
  const MoveEvent* behind = after(id);
  return behind ? behind->event : nullptr;
}

void MoveLane::issued(std::uint64_t id, std::uint64_t bytes, bool counted) {
  last_issued_ = id;
  outstanding_ += counted ? bytes : 0;
  unrecorded_ += counted ? bytes : 0;
  since_event_ += bytes;
}

bool MoveLane::record(std::uint64_t id) noexcept {
  MoveEvent& oldest = events_[events_made_ % kEvents];
  if (!oldest.event && driver().EventCreate(&oldest.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    oldest.event = nullptr;
    return false;
  }
  if (driver().EventRecord(oldest.event, stream_) != CUDA_SUCCESS) {
    return false;
  }
  oldest.id = id;
  ++events_made_;
  if (unrecorded_ != 0) {
    handed_.push_back({oldest.event, unrecorded_});
  }
  unrecorded_ = since_event_ = 0;
  return true;
}

// The first event at or behind the command.
const MoveLane::MoveEvent* MoveLane::after(std::uint64_t id) noexcept {
  const std::uint64_t found = first_event_after(events_, events_made_, kEvents, id);
  if (found != events_made_) {
    return &events_[found % kEvents];
  }
  return record(last_issued_) ? &events_[(events_made_ - 1) % kEvents] : nullptr;
}

void MoveLane::collect() noexcept {
  if (unrecorded_ != 0 && handed_.empty() && !record(last_issued_)) {
    outstanding_ -= std::min(outstanding_, unrecorded_);  // nothing will ever tell that these are complete
    unrecorded_ = 0;
  }
  while (!handed_.empty()) {
    // Whatever an error means, waiting longer would not help.
    if (driver().EventQuery && driver().EventQuery(handed_.front().event) == CUDA_ERROR_NOT_READY) {
      return;
    }
    outstanding_ -= std::min(outstanding_, handed_.front().bytes);
    handed_.pop_front();
  }
}

}  // namespace deepum::runtime
