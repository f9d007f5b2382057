#include "marker_table.hpp"

#include <algorithm>
#include <mutex>

#include "contexts.hpp"

namespace deepum::runtime {

EventRing::Place MarkerTable::reserve(EventRing& ring, std::uint32_t stream_id, std::uint32_t words,
                                      std::uint64_t* sequence) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  const EventRing::Place place = streams_[id].reserve(ring, words, sequence);
  if (place.sequence == 0) [[unlikely]] {
    unreported_.fetch_or(1ull << id, std::memory_order_seq_cst);
  }
  return place;
}

void MarkerTable::failed(std::uint32_t stream_id) noexcept {
  streams_[std::min(stream_id, kShared)].settled(false, 1, 0);
}

StreamMarkers* MarkerTable::of(CUstream stream, std::uint32_t id) noexcept {
  if (id < kShared) {
    return streams_[id].stream() == stream ? &streams_[id] : nullptr;
  }
  const std::uint32_t count = sharing_count_.load(std::memory_order_acquire);
  StreamMarkers* const end = sharing_ + count;
  StreamMarkers* const found =
      std::find_if(sharing_, end, [&](StreamMarkers& each) { return each.is(stream); });
  return found != end ? found : nullptr;
}

// Under one lock from the look for a place to its being taken: several streams may come at once.
StreamMarkers* MarkerTable::adopt_sharing(CUstream stream, CUcontext context) noexcept {
  const std::lock_guard lock(sharing_lock_);
  if (StreamMarkers* const known = of(stream, kShared)) {
    return known;
  }
  const std::uint32_t count = sharing_count_.load(std::memory_order_relaxed);
  StreamMarkers* free = of(nullptr, kShared);
  if (!free && count < kMostSharing) {
    free = &sharing_[count];
    sharing_count_.store(count + 1, std::memory_order_release);
  }
  if (free) {
    free->adopt(stream, context);
  }
  return free;
}

// Several threads may launch on a stream that shares its id, of which none is counted in flight by
// the stream itself.
bool MarkerTable::record(StreamMarkers& stream, bool own, std::uint64_t limit) noexcept {
  const bool shares = &stream >= sharing_ && &stream < sharing_ + kMostSharing;
  if (!stream.record(own, shares ? std::min(limit, streams_[kShared].settled_up_to()) : limit)) {
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

StreamMarkers* MarkerTable::enter(CUstream stream, std::uint32_t stream_id) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  if (StreamMarkers* const known = of(stream, id)) {
    return known;
  }
  const CUcontext context = current_context();
  StreamMarkers* markers = nullptr;
  if (id == kShared) {
    markers = adopt_sharing(stream, context);
  } else {
    markers = &streams_[id];
    markers->adopt(stream, context);
  }
  if (markers) {
    used_.fetch_or(1ull << id, std::memory_order_seq_cst);
  }
  return markers;
}

bool MarkerTable::mark_before(CUstream stream, std::uint32_t stream_id,
                              std::uint64_t sequence) noexcept {
  StreamMarkers* const markers = stream_id < kShared ? of(stream, stream_id) : nullptr;
  if (!markers) {
    return false;
  }
  if (!markers->only_unmarked(sequence)) {
    record(*markers, true, sequence - 1);
  }
  return markers->only_unmarked(sequence);
}

bool MarkerTable::launched(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence,
                           std::uint32_t interval, std::uint64_t blocks) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  StreamMarkers* const markers = enter(stream, id);
  bool due = false;
  if (id == kShared) [[unlikely]] {
    if (markers) {
      // Before it leaves the count of those in flight.
      due = markers->accepted(sequence, interval, blocks);
    }
    streams_[kShared].settled(true, interval, blocks);
  } else {
    due = markers->settled(true, interval, blocks);
  }
  if (!due) {
    [[likely]] return false;
  }
  const bool recorded = record(*markers, true);
  return wanted_.load(std::memory_order_relaxed) != 0 ? serve_wanted(id) || recorded : recorded;
}

// Each stream that lives; false if one call was.
template <typename F>
bool MarkerTable::for_all(F each) noexcept {
  bool all = true;
  for (std::uint64_t used = used_.load(std::memory_order_seq_cst) & ~(1ull << kShared); used != 0;
       used &= used - 1) {
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
  return for_all([&](StreamMarkers& stream) { return stream.wait(event); });
}

bool MarkerTable::all_can_wait() noexcept {
  return for_all([](StreamMarkers& stream) { return stream.waitable() != nullptr; });
}

bool MarkerTable::has_outstanding(std::uint32_t markers) noexcept {
  bool any = false;
  for_all([&](StreamMarkers& stream) { return any = any || stream.has_outstanding(markers); });
  return any;
}

StreamMarkers::Reached MarkerTable::reached() noexcept {
  StreamMarkers::Reached all;
  for_all([&](StreamMarkers& stream) {
    const StreamMarkers::Reached one = stream.reached();
    all.completed = std::min(all.completed, one.completed);
    all.begun = std::max(all.begun, one.begun);
    return true;
  });
  return all;
}

bool MarkerTable::all_marked(std::uint64_t stream_mask) noexcept {
  for (std::uint64_t mask = stream_mask & ~(1ull << kShared); mask != 0; mask &= mask - 1) {
    if (streams_[__builtin_ctzll(mask)].incomplete()) {
      return false;
    }
  }
  const std::uint32_t sharing =
      stream_mask >> kShared & 1 ? sharing_count_.load(std::memory_order_acquire) : 0;
  return std::none_of(sharing_, sharing_ + sharing,
                      [](const StreamMarkers& stream) { return stream.incomplete(); });
}

bool MarkerTable::flush(std::uint32_t stream_id) noexcept {
  if (stream_id < kShared) {
    return streams_[stream_id].unmarked() && record(streams_[stream_id], false);
  }
  bool any = false;
  for (std::uint64_t used = used_.load(std::memory_order_relaxed) & ~(1ull << kShared); used != 0;
       used &= used - 1) {
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
  for (std::uint32_t i = 0;
       stream_id >= kShared && i < sharing_count_.load(std::memory_order_acquire); ++i) {
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
