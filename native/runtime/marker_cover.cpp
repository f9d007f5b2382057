// Which markers lie behind a launch.
#include <algorithm>
#include <mutex>

#include "driver.hpp"
#include "marker_search.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

Cover StreamMarkers::cover(std::uint64_t sequence, Markers* found) noexcept {
  const std::lock_guard lock(lock_);
  found->count = 0;
  if (failures_ >= kMostFailures) {
    return Cover::kNothing;  // no markers here: a move that comes too early costs a fault
  }
  // A stream that no launch was ever accepted on has only refused ones.
  const bool launched_on = stream() != nullptr || in_flight_ != 0;
  const std::uint64_t unmarked = launched_on ? unmarked_.load(std::memory_order_relaxed) : 0;
  const auto kept = [&](std::uint64_t i) -> const Marker& { return kept_[(i - 1) % kKept]; };
  const auto there = [&](std::uint64_t i) {
    return i > 0 && i + kKept > count_ && kept(i).sequence != 0;
  };
  std::uint64_t oldest = count_ >= kKept ? count_ - kKept + 1 : 1;
  while (oldest < count_ && !there(oldest)) {
    ++oldest;
  }
  const std::uint64_t at = mover::covering_marker(oldest, count_, sequence, kept, there);
  const bool any = there(at);
  if ((!any || kept(at).sequence < sequence) &&
      (recording_ || (unmarked != 0 && unmarked <= sequence))) {
    return Cover::kNotYet;
  }
  std::uint32_t later = 0;
  for (std::uint64_t i = at; any && there(i); --i) {
    if ((i == at || kept(i).incarnation != later) && kept(i).event) {
      found->of[found->count++] = kept(i);
    }
    later = kept(i).incarnation;
    if (later == kept(oldest).incarnation) {
      break;  // nor is any before it of another stream
    }
  }
  std::reverse(found->of, found->of + found->count);
  return found->count != 0 ? Cover::kMarker : Cover::kNothing;
}

Cover StreamMarkers::cover_in_flight(std::uint64_t sequence) noexcept {
  const std::lock_guard lock(lock_);
  return in_flight_ != 0 && first_in_flight_ <= sequence ? Cover::kNotYet : Cover::kNothing;
}

// Markers complete in the order in which they were recorded. One whose event was recorded again
// meanwhile counts as not done.
StreamMarkers::Reached StreamMarkers::reached() noexcept {
  Reached made;
  std::uint64_t count = 0;
  bool marked = false;
  {
    const std::lock_guard lock(lock_);
    made.begun = emitted_;
    count = count_;
    marked = unmarked_.load(std::memory_order_relaxed) == 0 && in_flight_ == 0;
  }
  if (made.begun == 0) {
    return made;
  }
  made.completed = 0;
  if (incomplete() || !driver().EventQuery) {
    return made;
  }
  const auto done = [&](std::uint64_t i, std::uint64_t* sequence) {
    Marker marker;
    {
      const std::lock_guard lock(lock_);
      marker = kept_[i % kKept];
      if (count_ - i > kKept) {
        marker.event = nullptr;
      }
    }
    *sequence = marker.sequence;
    return marker.event && driver().EventQuery(marker.event) == CUDA_SUCCESS;
  };
  std::uint64_t first = count - std::min<std::uint64_t>(count, kKept - 1);
  // Those before `first` are done, from `end` on none is.
  for (std::uint64_t end = count; first < end;) {
    const std::uint64_t middle = first + (end - first) / 2;
    std::uint64_t sequence = 0;
    if (done(middle, &sequence)) {
      made.completed = sequence;
      first = middle + 1;
    } else {
      made.begun = std::min(made.begun, sequence);
      end = middle;
    }
  }
  if (first == count && marked) {
    made.completed = UINT64_MAX;
  }
  return made;
}

bool StreamMarkers::has_outstanding(std::uint32_t markers) noexcept {
  CUevent event = nullptr;
  {
    const std::lock_guard lock(lock_);
    event = count_ >= markers ? kept_[(count_ - markers) % kKept].event : nullptr;
  }
  return event && driver().EventQuery && driver().EventQuery(event) == CUDA_ERROR_NOT_READY;
}

bool StreamMarkers::still(const Marker& marker) noexcept {
  const std::lock_guard lock(lock_);
  const Marker& kept = kept_[marker.number % kKept];
  return kept.event == marker.event && kept.sequence == marker.sequence &&
         kept.generation == marker.generation;
}

}  // namespace deepum::runtime
