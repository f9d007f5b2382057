#include "move_lane.hpp"

#include <algorithm>
#include <utility>

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
  spare_ = nullptr;
  events_.clear();
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
  if (other->last_issued_ < id) {
    return true;  // it never had that command
  }
  const auto found = waited_moves_.find(other);
  return found != waited_moves_.end() && found->second >= id;
}

bool MoveLane::wait(const Marker& marker) noexcept { return driver().StreamWaitEvent(stream_, marker.event, 0) == CUDA_SUCCESS; }

bool MoveLane::wait(MoveLane* other, std::uint64_t id) {
  const MoveEvent* behind = other->after(id);
  if (!behind || driver().StreamWaitEvent(stream_, behind->event, 0) != CUDA_SUCCESS) {
    return false;
  }
  waited_moves_[other] = behind->id;
  return true;
}

void MoveLane::hold(CUstream stream, std::uint64_t id) {
  if (const MoveEvent* behind = after(id)) {
    driver().StreamWaitEvent(stream, behind->event, 0);
  }
}

CUevent MoveLane::event_after(std::uint64_t id) {
  const MoveEvent* behind = after(id);
  return behind ? behind->event : nullptr;
}

void MoveLane::issued(std::uint64_t id, std::uint64_t bytes, bool counted) {
  last_issued_ = id;
  outstanding_ += counted ? bytes : 0;
  unrecorded_ += counted ? bytes : 0;
  since_event_ += bytes;
}

// A new one, or the oldest. Null: none can be made.
CUevent MoveLane::event_to_record() {
  if (spare_) {
    return std::exchange(spare_, nullptr);
  }
  const bool full = events_.size() >= (keeps_until_complete_ ? kMostEvents : kEvents);
  if (full || (events_.size() >= kEvents && driver().EventQuery && driver().EventQuery(events_.front().event) != CUDA_ERROR_NOT_READY)) {
    const CUevent oldest = events_.front().event;
    events_.pop_front();
    return oldest;
  }
  CUevent made = nullptr;
  return driver().EventCreate(&made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? made : nullptr;
}

bool MoveLane::record(std::uint64_t id) {
  const CUevent event = event_to_record();
  if (!event) {
    return false;
  }
  if (driver().EventRecord(event, stream_) != CUDA_SUCCESS) {
    spare_ = event;
    return false;
  }
  events_.push_back({id, event});
  if (unrecorded_ != 0) {
    handed_.push_back({event, unrecorded_});
  }
  unrecorded_ = since_event_ = 0;
  return true;
}

// The first event at or behind the command.
const MoveLane::MoveEvent* MoveLane::after(std::uint64_t id) {
  const auto found = std::ranges::lower_bound(events_, id, {}, &MoveEvent::id);
  if (found != events_.end()) {
    return &*found;
  }
  return record(last_issued_) ? &events_.back() : nullptr;
}

void MoveLane::collect() {
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
