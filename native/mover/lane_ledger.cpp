#include "lane_ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace deepum::mover {

void LaneLedger::forget_stream() noexcept {
  last_issued_ = first_unrecorded_ = last_forgotten_ = 0;
  spare_ = 0;
  events_.clear();
  markers_.clear();
  moves_.clear();
  handed_over_.clear();
  outstanding_ = unrecorded_ = since_event_ = 0;
}

// The last marker of each earlier stream that had the id comes with a later stream's markers: a
// wait for one of these implies the earlier.
bool LaneLedger::waits_for(const MarkerRef& marker) const noexcept {
  const auto found = markers_.find(marker.stream);
  if (found == markers_.end() || found->second.incarnation < marker.incarnation) {
    return false;
  }
  return found->second.incarnation > marker.incarnation ||
         found->second.sequence >= marker.sequence;
}

bool LaneLedger::waits_for(const LaneLedger& other, std::uint64_t id) const noexcept {
  if (other.last_issued_ < id) {
    return true;  // it never had that command
  }
  const auto found = moves_.find(other.lane_);
  return found != moves_.end() && found->second >= id;
}

bool LaneLedger::wait(LaneEvents& events, LaneLedger& other, std::uint64_t id) {
  const MoveEvent* const behind = other.first_after(events, id);
  if (behind == nullptr || !events.wait_event(lane_, behind->event)) {
    return false;
  }
  moves_[other.lane_] = behind->id;
  return true;
}

std::uint64_t LaneLedger::latest_until(std::uint64_t id) const noexcept {
  const auto behind = std::ranges::lower_bound(events_, id, {}, &MoveEvent::id);
  const std::uint64_t first = behind != events_.end() ? behind->first : first_unrecorded_;
  if ((first != 0 && first <= id) || id <= last_forgotten_) {
    return id;
  }
  return behind != events_.begin() ? std::prev(behind)->id : 0;
}

void LaneLedger::issued(std::uint64_t first, std::uint64_t id, std::uint64_t bytes,
                        bool counted) noexcept {
  first_unrecorded_ = first_unrecorded_ == 0 ? first : first_unrecorded_;
  last_issued_ = id;
  outstanding_ += counted ? bytes : 0;
  unrecorded_ += counted ? bytes : 0;
  since_event_ += bytes;
}

// A new one, or the oldest. 0: none can be made.
EventHandle LaneLedger::event_to_record(LaneEvents& events) {
  if (spare_ != 0) {
    return std::exchange(spare_, 0);
  }
  const bool full = events_.size() >= (keeps_until_complete_ ? kMostEvents : events_kept_);
  if (full || (events_.size() >= events_kept_ && events.completed(events_.front().event))) {
    const EventHandle oldest = events_.front().event;
    last_forgotten_ = full ? events_.front().id : last_forgotten_;
    events_.pop_front();
    return oldest;
  }
  return events.make_event();
}

bool LaneLedger::record(LaneEvents& events, std::uint64_t id) {
  const EventHandle event = event_to_record(events);
  if (event == 0) {
    return false;
  }
  if (!events.record_event(lane_, event)) {
    spare_ = event;
    return false;
  }
  events_.push_back({first_unrecorded_ != 0 ? first_unrecorded_ : id, id, event});
  first_unrecorded_ = 0;
  if (unrecorded_ != 0) {
    handed_over_.push_back({event, unrecorded_});
  }
  unrecorded_ = since_event_ = 0;
  return true;
}

const LaneLedger::MoveEvent* LaneLedger::first_after(LaneEvents& events, std::uint64_t id) {
  const auto found = std::ranges::lower_bound(events_, id, {}, &MoveEvent::id);
  if (found != events_.end()) {
    return &*found;
  }
  return record(events, last_issued_) ? &events_.back() : nullptr;
}

EventHandle LaneLedger::event_after(LaneEvents& events, std::uint64_t id) {
  const MoveEvent* const behind = first_after(events, id);
  return behind != nullptr ? behind->event : 0;
}

void LaneLedger::collect(LaneEvents& events) {
  if (unrecorded_ != 0 && handed_over_.empty() && !record(events, last_issued_)) {
    // Without an event it will never be known that these are complete.
    outstanding_ -= std::min(outstanding_, unrecorded_);
    unrecorded_ = 0;
  }
  for (; !handed_over_.empty() && events.completed(handed_over_.front().event);
       handed_over_.pop_front()) {
    outstanding_ -= std::min(outstanding_, handed_over_.front().bytes);
  }
}

}  // namespace deepum::mover
