#include "marker_table.hpp"

#include <algorithm>
#include <mutex>

#include "driver.hpp"

namespace deepum::runtime {

EventRing::Place MarkerTable::reserve(EventRing& ring, std::uint32_t stream_id, std::uint32_t words) noexcept {
  return streams_[std::min(stream_id, kShared)].reserve(ring, words);
}

void MarkerTable::failed(std::uint32_t stream_id) noexcept { streams_[std::min(stream_id, kShared)].settled(false, 1, 0); }

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

void MarkerTable::enter(CUstream stream, std::uint32_t stream_id) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  StreamMarkers* markers = id < kShared ? &streams_[id] : sharing(stream);
  if (markers && markers->stream() != stream) {
    markers->adopt(stream, current_context());
    used_.fetch_or(1ull << id, std::memory_order_seq_cst);
  }
}

bool MarkerTable::launched(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence, std::uint32_t interval,
                           std::uint64_t blocks) noexcept {
  const std::uint32_t id = std::min(stream_id, kShared);
  StreamMarkers* markers = id < kShared ? &streams_[id] : sharing(stream);
  if (markers && markers->stream() != stream) [[unlikely]] {
    enter(stream, stream_id);
  }
  bool due = false;
  if (id == kShared) [[unlikely]] {
    if (markers) {
      due = markers->accepted(sequence, interval, blocks);  // before it leaves the count of those in flight
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
  for (std::uint64_t used = used_.load(std::memory_order_seq_cst) & ~(1ull << kShared); used != 0; used &= used - 1) {
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
