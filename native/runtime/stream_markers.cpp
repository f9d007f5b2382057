#include "stream_markers.hpp"

#include <algorithm>
#include <mutex>

#include "contexts.hpp"
#include "driver.hpp"
#include "relaxed.hpp"

namespace deepum::runtime {
namespace {

CUevent create_event() noexcept {
  const Driver& call = driver();
  if (!call.EventCreate) {
    return nullptr;
  }
  const Relaxed mode;
  CUevent event = nullptr;
  return call.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}

}  // namespace

EventRing::Place StreamMarkers::reserve(EventRing& ring, std::uint32_t words,
                                        std::uint64_t* sequence) noexcept {
  const std::lock_guard lock(lock_);
  const EventRing::Place place = ring.reserve(words);
  *sequence = place.sequence != 0 ? place.sequence : ring.reserved() / 8;
  emitted_ = *sequence;
  if (in_flight_++ == 0) {
    first_in_flight_ = *sequence;
  }
  if (unmarked_.load(std::memory_order_relaxed) == 0) {
    unmarked_.store(*sequence, std::memory_order_relaxed);
  }
  return place;
}

bool StreamMarkers::due(std::uint32_t interval, std::uint64_t blocks) noexcept {
  blocks_since_marker_ += blocks;
  return ++since_marker_ >= interval || blocks_since_marker_ >= mover::kMarkedBlocks;
}

bool StreamMarkers::settled(bool accepted, std::uint32_t interval, std::uint64_t blocks) noexcept {
  const std::lock_guard lock(lock_);
  if (in_flight_ != 0) {
    --in_flight_;
  }
  if (!accepted) {
    return false;
  }
  const bool wanted = due(interval, blocks);
  // A thread that ended in the middle of a launch is waited for no longer than this.
  if (since_marker_ >= 8 * std::uint64_t{interval} && in_flight_ != 0) {
    in_flight_ = 0;
  }
  return wanted;
}

bool StreamMarkers::accepted(std::uint64_t sequence, std::uint32_t interval,
                             std::uint64_t blocks) noexcept {
  const std::lock_guard lock(lock_);
  emitted_ = std::max(emitted_, sequence);
  if (const std::uint64_t unmarked = unmarked_.load(std::memory_order_relaxed);
      unmarked == 0 || sequence < unmarked) {
    unmarked_.store(sequence, std::memory_order_relaxed);
  }
  return due(interval, blocks);
}

void StreamMarkers::adopt(CUstream stream, CUcontext context) noexcept {
  const std::lock_guard lock(lock_);
  stream_.store(stream, std::memory_order_relaxed);
  context_ = context;
  thread_ = ::pthread_self();
  failures_ = 0;
}

// The default streams of all contexts have one handle, a thread's own that of all threads.
bool StreamMarkers::is(CUstream handle) noexcept {
  if (stream() != handle) {
    return false;
  }
  if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    return true;
  }
  const CUcontext current = current_context();
  const std::lock_guard lock(lock_);
  return context_ == current &&
         (handle == CU_STREAM_LEGACY || ::pthread_equal(thread_, ::pthread_self()));
}

// Under the lock: from here to `publish` or `withdraw` nobody else records on this stream, nor
// destroys it.
bool StreamMarkers::claim(CUcontext context, std::uint64_t limit, std::uint64_t* first,
                          std::uint64_t* sequence, Marker* reused) noexcept {
  const std::lock_guard lock(lock_);
  const std::uint64_t unmarked = unmarked_.load(std::memory_order_relaxed);
  const std::uint64_t reach = std::min(answered(), limit);
  if (recording_ || stream() == nullptr || unmarked == 0 || reach < unmarked ||
      failures_ >= kMostFailures) {
    return false;
  }
  recording_ = true;
  since_marker_ = 0;
  blocks_since_marker_ = 0;
  *first = unmarked;
  *sequence = reach;
  unmarked_.store(in_flight_ || emitted_ > reach ? reach + 1 : 0, std::memory_order_relaxed);
  Marker& oldest = kept_[count_ % kKept];
  *reused = oldest;
  oldest.sequence = 0;
  oldest.event = nullptr;
  ++oldest.generation;
  if (reused->context != context) {
    reused->event = nullptr;  // of another context: it ends with that
  }
  return true;
}

// The last marker of an earlier stream gives way to a new one: fine if that stream's work is done.
bool StreamMarkers::still_needed(const Marker& reused) noexcept {
  {
    const std::lock_guard lock(lock_);
    if (reused.sequence == 0 || !reused.event || reused.incarnation == incarnation_) {
      return false;
    }
  }
  const Relaxed mode;
  return !driver().EventQuery || driver().EventQuery(reused.event) != CUDA_SUCCESS;
}

void StreamMarkers::publish(const Marker& marker) noexcept {
  const std::lock_guard lock(lock_);
  Marker& place = kept_[count_ % kKept];
  const std::uint32_t generation = place.generation;
  place = marker;
  place.generation = generation;
  place.incarnation = incarnation_;
  place.number = count_;
  ++count_;
  failures_ = 0;
  recording_ = false;
}

void StreamMarkers::withdraw(std::uint64_t first, CUevent event, CUcontext context,
                             bool tried) noexcept {
  const std::lock_guard lock(lock_);
  kept_[count_ % kKept].event = event;
  kept_[count_ % kKept].context = context;
  unmarked_.store(first, std::memory_order_relaxed);
  if (tried && ++failures_ >= kMostFailures) {
    incomplete_.store(true, std::memory_order_relaxed);
  }
  recording_ = false;
}

bool StreamMarkers::mine_to_record(CUcontext current) noexcept {
  CUstream handle;
  {
    const std::lock_guard lock(lock_);
    handle = stream();
    if (!handle || !current || context_ != current) {
      return false;
    }
    if (handle == CU_STREAM_PER_THREAD && !::pthread_equal(thread_, ::pthread_self())) {
      return false;
    }
  }
  return true;
}

// A stream of another device is recorded on in its own context: what waits for all that was
// launched, as discards do, would else wait for that device's next launch.
bool StreamMarkers::record(bool own, std::uint64_t limit) noexcept {
  const CUcontext current = current_context();
  if (own) {
    return record_in(current, true, limit);
  }
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(lock_);
    context = context_;
  }
  if (!current || !unmarked() || !mine_to_record(context)) {
    return false;
  }
  if (context == current) {
    return record_in(context, false, limit);
  }
  const Elsewhere there(context);
  return there && record_in(context, false, limit);
}

bool StreamMarkers::record_in(CUcontext context, bool own, std::uint64_t limit) noexcept {
  std::uint64_t first = 0, sequence = 0;
  Marker marker;
  if (!claim(context, limit, &first, &sequence, &marker)) {
    return false;
  }
  const CUstream handle = stream();
  const bool recordable = (own || !is_capturing(handle)) && driver().EventRecord;
  if (recordable && still_needed(marker)) {
    incomplete_.store(true, std::memory_order_relaxed);
  }
  if (recordable && !marker.event) {
    marker.event = create_event();
  }
  if (!recordable || !marker.event || driver().EventRecord(marker.event, handle) != CUDA_SUCCESS) {
    withdraw(first, marker.event, context, recordable);
    return false;
  }
  marker.sequence = sequence;
  marker.first = first;
  marker.context = context;
  publish(marker);
  return true;
}

std::uint64_t StreamMarkers::record_behind(CUevent event, CUcontext context) noexcept {
  if (!mine_to_record(context)) {
    return 0;
  }
  CUstream handle = nullptr;
  std::uint64_t reach = 0;
  {
    const std::lock_guard lock(lock_);
    handle = stream();
    if (recording_ || !handle) {
      return 0;
    }
    recording_ = true;  // so that it is not destroyed meanwhile
    reach = answered();
  }
  const bool recorded = !is_capturing(handle) && driver().EventRecord &&
                        driver().EventRecord(event, handle) == CUDA_SUCCESS;
  const std::lock_guard lock(lock_);
  recording_ = false;
  return recorded ? reach : 0;
}

bool StreamMarkers::only_unmarked(std::uint64_t sequence) noexcept {
  const std::lock_guard lock(lock_);
  return in_flight_ == 1 && !recording_ && unmarked_.load(std::memory_order_relaxed) == sequence;
}

std::uint64_t StreamMarkers::settled_up_to() noexcept {
  const std::lock_guard lock(lock_);
  return answered();
}

std::uint64_t StreamMarkers::emitted() noexcept {
  const std::lock_guard lock(lock_);
  return emitted_;
}

void StreamMarkers::destroyed(CUstream handle) noexcept {
  if (stream() != handle) {
    return;
  }
  // A thread's own stream ends with its thread, where the driver may be gone already.
  if (handle != CU_STREAM_PER_THREAD) {
    record(false);
  }
  for (int tries = 0; tries < 1000000; ++tries) {
    {
      const std::lock_guard lock(lock_);
      if (!recording_) {
        stream_.store(nullptr, std::memory_order_relaxed);
        context_ = nullptr;
        if (unmarked_.exchange(0, std::memory_order_relaxed) != 0) {
          incomplete_.store(true, std::memory_order_relaxed);
        }
        in_flight_ = 0;
        since_marker_ = 0;
        blocks_since_marker_ = 0;
        ++incarnation_;
        return;
      }
    }
    ::sched_yield();
  }
}

void StreamMarkers::context_destroyed(CUcontext context) noexcept {
  const std::lock_guard lock(lock_);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count_ + 1, kKept); ++i) {
    Marker& marker = kept_[i];
    if (marker.context != context) {
      continue;
    }
    marker.event = nullptr;
    marker.context = nullptr;
    ++marker.generation;
  }
  if (context_ == context) {
    stream_.store(nullptr, std::memory_order_relaxed);
    context_ = nullptr;
    unmarked_.store(0, std::memory_order_relaxed);
    ++incarnation_;
  }
}

}  // namespace deepum::runtime
