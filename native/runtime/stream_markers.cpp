#include "stream_markers.hpp"

#include <algorithm>
#include <mutex>

#include "driver.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint32_t kMostFailures = 4;

CUevent create_event() noexcept {
  const Driver& call = driver();
  if (!call.EventCreate) {
    return nullptr;
  }
  // Another thread may be capturing; nothing of ours concerns it.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool exchanged = call.ThreadExchangeStreamCaptureMode && call.ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  CUevent event = nullptr;
  if (call.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    event = nullptr;
  }
  if (exchanged) {
    call.ThreadExchangeStreamCaptureMode(&mode);
  }
  return event;
}

bool is_capturing(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return !driver().StreamIsCapturing || driver().StreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

CUcontext current_context() noexcept {
  CUcontext context = nullptr;
  return driver().CtxGetCurrent && driver().CtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

EventRing::Place StreamMarkers::reserve(EventRing& ring, std::uint32_t words) noexcept {
  const std::lock_guard lock(lock_);
  const EventRing::Place place = ring.reserve(words);
  if (place.sequence == 0) {
    return place;
  }
  emitted_ = place.sequence;
  if (in_flight_++ == 0) {
    first_in_flight_ = place.sequence;
  }
  if (unmarked_.load(std::memory_order_relaxed) == 0) {
    unmarked_.store(place.sequence, std::memory_order_relaxed);
  }
  return place;
}

bool StreamMarkers::settled(bool accepted, std::uint32_t interval) noexcept {
  const std::lock_guard lock(lock_);
  if (in_flight_ != 0) {
    --in_flight_;
  }
  if (!accepted) {
    return false;
  }
  ++since_marker_;
  // A thread that ended in the middle of a launch is waited for no longer than this.
  if (since_marker_ >= 8 * std::uint64_t{interval} && in_flight_ != 0) {
    in_flight_ = 0;
  }
  return since_marker_ >= interval;
}

bool StreamMarkers::accepted(std::uint64_t sequence, std::uint32_t interval) noexcept {
  const std::lock_guard lock(lock_);
  emitted_ = std::max(emitted_, sequence);
  if (unmarked_.load(std::memory_order_relaxed) == 0) {
    unmarked_.store(sequence, std::memory_order_relaxed);
  }
  return ++since_marker_ >= interval;
}

void StreamMarkers::adopt(CUstream stream, CUcontext context) noexcept {
  const std::lock_guard lock(lock_);
  stream_.store(stream, std::memory_order_relaxed);
  context_ = context;
  thread_ = ::pthread_self();
  failures_ = 0;
}

// Under the lock: from here to `publish` or `withdraw` nobody else records on this stream, nor destroys it.
bool StreamMarkers::claim(CUcontext context, std::uint64_t* first, std::uint64_t* sequence, Marker* reused) noexcept {
  const std::lock_guard lock(lock_);
  const std::uint64_t unmarked = unmarked_.load(std::memory_order_relaxed);
  const std::uint64_t reach = in_flight_ ? first_in_flight_ - 1 : emitted_;
  if (recording_ || stream() == nullptr || unmarked == 0 || reach < unmarked || failures_ >= kMostFailures) {
    return false;
  }
  recording_ = true;
  since_marker_ = 0;
  *first = unmarked;
  *sequence = reach;
  unmarked_.store(in_flight_ ? first_in_flight_ : 0, std::memory_order_relaxed);
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

void StreamMarkers::publish(const Marker& marker) noexcept {
  const std::lock_guard lock(lock_);
  Marker& place = kept_[count_ % kKept];
  const std::uint32_t generation = place.generation;
  place = marker;
  place.generation = generation;
  place.incarnation = incarnation_;
  ++count_;
  failures_ = 0;
  recording_ = false;
}

void StreamMarkers::withdraw(std::uint64_t first, CUevent event, CUcontext context, bool tried) noexcept {
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

CUstream StreamMarkers::waitable() noexcept {
  const CUstream handle = stream();
  return handle && handle != CU_STREAM_PER_THREAD && !is_capturing(handle) ? handle : nullptr;
}

CUstream StreamMarkers::in_context(CUcontext context) noexcept {
  CUstream handle;
  {
    const std::lock_guard lock(lock_);
    handle = context && context_ == context ? stream() : nullptr;
  }
  return handle && handle != CU_STREAM_PER_THREAD && !is_capturing(handle) ? handle : nullptr;
}

bool StreamMarkers::record(bool own) noexcept {
  const CUcontext context = current_context();
  if (!own && !mine_to_record(context)) {
    return false;
  }
  std::uint64_t first = 0, sequence = 0;
  Marker marker;
  if (!claim(context, &first, &sequence, &marker)) {
    return false;
  }
  const CUstream handle = stream();
  const bool recordable = (own || !is_capturing(handle)) && driver().EventRecord;
  if (recordable && !marker.event) {
    marker.event = create_event();
  }
  if (!recordable || !marker.event || driver().EventRecord(marker.event, handle) != CUDA_SUCCESS) {
    withdraw(first, marker.event, context, recordable);
    return false;
  }
  marker.sequence = sequence;
  marker.context = context;
  publish(marker);
  return true;
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
        ++incarnation_;
        return;
      }
    }
    ::sched_yield();
  }
}

void StreamMarkers::context_destroyed(CUcontext context) noexcept {
  const std::lock_guard lock(lock_);
  for (Marker& marker : kept_) {
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

Cover StreamMarkers::cover(std::uint64_t sequence, Marker* marker) noexcept {
  const std::lock_guard lock(lock_);
  if (failures_ >= kMostFailures) {
    return Cover::kNothing;  // no markers here: a move that comes too early costs a fault
  }
  // A stream that no launch was ever accepted on has only refused ones.
  const bool launched_on = stream() != nullptr || in_flight_ != 0;
  const std::uint64_t unmarked = launched_on ? unmarked_.load(std::memory_order_relaxed) : 0;
  const Marker* found = nullptr;
  for (std::uint64_t i = count_; i > 0 && i + kKept > count_; --i) {
    const Marker& kept = kept_[(i - 1) % kKept];
    if (kept.sequence == 0 || (found && kept.sequence < sequence)) {
      break;
    }
    found = &kept;
    if (kept.sequence < sequence) {
      break;  // the newest one, which is older
    }
  }
  if (!found || found->sequence < sequence) {
    if (recording_ || (unmarked != 0 && unmarked <= sequence)) {
      return Cover::kNotYet;
    }
  }
  if (!found || !found->event) {
    return Cover::kNothing;
  }
  *marker = *found;
  return Cover::kMarker;
}

Cover StreamMarkers::cover_in_flight(std::uint64_t sequence) noexcept {
  const std::lock_guard lock(lock_);
  return in_flight_ != 0 && first_in_flight_ <= sequence ? Cover::kNotYet : Cover::kNothing;
}

bool StreamMarkers::still(const Marker& marker) noexcept {
  const std::lock_guard lock(lock_);
  for (const Marker& kept : kept_) {
    if (kept.event == marker.event && kept.sequence == marker.sequence) {
      return kept.generation == marker.generation;
    }
  }
  return false;
}

EventRing::Place MarkerTable::reserve(EventRing& ring, std::uint32_t stream_id, std::uint32_t words) noexcept {
  return streams_[std::min(stream_id, kShared)].reserve(ring, words);
}

void MarkerTable::failed(std::uint32_t stream_id) noexcept { streams_[std::min(stream_id, kShared)].settled(false, 1); }

StreamMarkers* MarkerTable::sharing(CUstream stream) noexcept {
  const std::lock_guard lock(sharing_lock_);
  const std::uint32_t count = sharing_count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (sharing_[i].stream() == stream) {
      return &sharing_[i];
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (sharing_[i].stream() == nullptr) {
      return &sharing_[i];
    }
  }
  if (count == kMostSharing) {
    return nullptr;
  }
  sharing_count_.store(count + 1, std::memory_order_release);
  return &sharing_[count];
}

bool MarkerTable::record(StreamMarkers& stream, bool own) noexcept {
  if (!stream.record(own)) {
    return false;
  }
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

bool MarkerTable::serve_wanted(std::uint32_t own_id) noexcept {
  std::uint64_t wanted = wanted_.exchange(0, std::memory_order_relaxed) & ~(1ull << own_id);
  bool any = false;
  for (; wanted != 0; wanted &= wanted - 1) {
    any |= flush(static_cast<std::uint32_t>(__builtin_ctzll(wanted)));
  }
  return any;
}

bool MarkerTable::launched(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence, std::uint32_t interval) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  StreamMarkers* markers = id < kShared ? &streams_[id] : sharing(stream);
  if (markers && markers->stream() != stream) [[unlikely]] {
    markers->adopt(stream, current_context());
    used_.fetch_or(1ull << id, std::memory_order_relaxed);
  }
  bool due = false;
  if (id == kShared) [[unlikely]] {
    if (markers) {
      due = markers->accepted(sequence, interval);  // before it leaves the count of those in flight
    }
    streams_[kShared].settled(true, interval);
  } else {
    due = markers->settled(true, interval);
  }
  if (!due) {
    [[likely]] return false;
  }
  const bool recorded = record(*markers, true);
  return wanted_.load(std::memory_order_relaxed) != 0 ? serve_wanted(id) || recorded : recorded;
}

bool MarkerTable::knows(CUstream stream, std::uint32_t stream_id) const noexcept {
  if (stream_id < kShared) {
    return streams_[stream_id].stream() == stream;
  }
  for (std::uint32_t i = 0; i < sharing_count_.load(std::memory_order_acquire); ++i) {
    if (sharing_[i].stream() == stream) {
      return true;
    }
  }
  return false;
}

// Each stream that lives; false if one call was.
template <typename F>
bool MarkerTable::for_all(F each) noexcept {
  bool all = true;
  for (std::uint64_t used = used_.load(std::memory_order_relaxed) & ~(1ull << kShared); used != 0; used &= used - 1) {
    StreamMarkers& stream = streams_[__builtin_ctzll(used)];
    all = (stream.stream() == nullptr || each(stream)) && all;
  }
  const std::uint32_t sharing = sharing_count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < sharing; ++i) {
    all = (sharing_[i].stream() == nullptr || each(sharing_[i])) && all;
  }
  return all && sharing < kMostSharing;
}

bool MarkerTable::wait_on_all(CUevent event) noexcept {
  return for_all([&](StreamMarkers& stream) {
    const CUstream handle = stream.waitable();
    return handle != nullptr && driver().StreamWaitEvent(handle, event, 0) == CUDA_SUCCESS;
  });
}

bool MarkerTable::all_can_wait() noexcept {
  return for_all([](StreamMarkers& stream) { return stream.waitable() != nullptr; });
}

bool MarkerTable::all_marked(std::uint64_t stream_mask) noexcept {
  for (std::uint64_t mask = stream_mask & ~(1ull << kShared); mask != 0; mask &= mask - 1) {
    if (streams_[__builtin_ctzll(mask)].incomplete()) {
      return false;
    }
  }
  const std::uint32_t sharing = stream_mask >> kShared & 1 ? sharing_count_.load(std::memory_order_acquire) : 0;
  return std::none_of(sharing_, sharing_ + sharing, [](const StreamMarkers& stream) { return stream.incomplete(); });
}

bool MarkerTable::flush(std::uint32_t stream_id) noexcept {
  if (stream_id < kShared) {
    return streams_[stream_id].unmarked() && record(streams_[stream_id], false);
  }
  bool any = false;
  for (std::uint64_t used = used_.load(std::memory_order_relaxed) & ~(1ull << kShared); used != 0; used &= used - 1) {
    StreamMarkers& stream = streams_[__builtin_ctzll(used)];
    if (stream.unmarked()) {
      any |= record(stream, false);
    }
  }
  for (std::uint32_t i = 0; i < sharing_count_.load(std::memory_order_acquire); ++i) {
    if (sharing_[i].unmarked()) {
      any |= record(sharing_[i], false);
    }
  }
  return any;
}

void MarkerTable::destroyed(CUstream stream, std::uint32_t stream_id) noexcept {
  if (stream_id < kShared) {
    streams_[stream_id].destroyed(stream);
  }
  for (std::uint32_t i = 0; stream_id >= kShared && i < sharing_count_.load(std::memory_order_acquire); ++i) {
    sharing_[i].destroyed(stream);
  }
  epoch_.fetch_add(1, std::memory_order_seq_cst);
}

void MarkerTable::context_destroyed(CUcontext context) noexcept {
  for (StreamMarkers& stream : streams_) {
    stream.context_destroyed(context);
  }
  for (StreamMarkers& stream : sharing_) {
    stream.context_destroyed(context);
  }
}

}  // namespace deepum::runtime
