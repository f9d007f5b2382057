#include "markers.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "driver.hpp"
#include "session.hpp"

namespace deepum::runtime {

Markers& Markers::instance() noexcept {
  static Markers markers;
  return markers;
}

bool Markers::launched(CUdevice device, CUstream stream, std::uint32_t stream_id, std::uint64_t sequence) noexcept {
  if (sequence == 0 || stream_id >= DEEPUM_MAX_STREAMS) {
    return false;
  }
  Stream& s = streams_[stream_id];
  {
    const std::lock_guard guard(s.lock);
    if (s.handle != stream || s.first_launch == 0) {
      s.handle = stream;
      s.device = device;
      s.first_launch = s.first_launch == 0 ? sequence : s.first_launch;
    }
    s.last_launch = std::max(s.last_launch, sequence);
    if (++s.since_marker < settings().marker_interval) {
      return false;
    }
    s.since_marker = 0;
  }
  return record(s, sequence);
}

// The calling thread has the stream's context current: it has just launched there, or is about to wait for it.
bool Markers::record(Stream& s, std::uint64_t sequence) noexcept {
  Marker marker{sequence, nullptr};
  CUstream stream = nullptr;
  {
    const std::lock_guard guard(s.lock);
    stream = s.handle;
    if (s.ring == nullptr) {
      s.ring = new (std::nothrow) Marker[kKept];
      if (s.ring == nullptr) {
        return false;
      }
    }
    Marker& oldest = s.ring[s.written % kKept];
    if (s.written >= kKept) {
      marker.event = oldest.event;  // its launches are long done; a wait still queued on it has its own record
      oldest.event = nullptr;
    }
  }
  const Driver& d = driver();
  if (d.EventCreate == nullptr || d.EventRecord == nullptr) {
    return false;
  }
  if (marker.event == nullptr && d.EventCreate(&marker.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return false;
  }
  if (d.EventRecord(marker.event, stream) != CUDA_SUCCESS) {
    if (d.EventDestroy != nullptr) {
      d.EventDestroy(marker.event);
    }
    return false;
  }
  const std::lock_guard guard(s.lock);
  // Another thread may have recorded a later one meanwhile; sequences in the ring only rise.
  if (s.written > 0) {
    marker.sequence = std::max(marker.sequence, s.ring[(s.written - 1) % kKept].sequence);
  }
  s.ring[s.written++ % kKept] = marker;
  return true;
}

bool Markers::flush(std::uint32_t stream_id) noexcept {
  bool any = false;
  const bool all = stream_id >= DEEPUM_ALL_STREAMS;
  for (std::uint32_t id = all ? 0 : stream_id; id <= (all ? DEEPUM_MAX_STREAMS - 1u : stream_id); ++id) {
    Stream& s = streams_[id];
    std::uint64_t sequence = 0;
    {
      const std::lock_guard guard(s.lock);
      if (s.since_marker == 0) {
        continue;
      }
      s.since_marker = 0;
      sequence = s.last_launch;
    }
    any |= record(s, sequence);
  }
  return any;
}

void Markers::forget(std::uint32_t stream_id) noexcept {
  if (stream_id >= DEEPUM_MAX_STREAMS) {
    return;
  }
  Stream& s = streams_[stream_id];
  const std::lock_guard guard(s.lock);
  // Its events stay for the next stream of that id; what it launched completes by itself.
  s.handle = nullptr;
  s.since_marker = 0;
  s.first_launch = 0;
  s.last_launch = 0;
}

Markers::Cover Markers::cover(std::uint32_t stream_id, std::uint64_t sequence, CUevent* event, std::uint64_t* covered) noexcept {
  Stream& s = streams_[stream_id];
  const std::lock_guard guard(s.lock);
  if (sequence == 0 || s.first_launch == 0 || sequence < s.first_launch) {
    return Cover::nothing_to_wait;
  }
  if (s.written == 0 || s.ring == nullptr) {
    return Cover::not_yet;
  }
  const Marker& last = s.ring[(s.written - 1) % kKept];
  if (last.sequence < sequence) {
    if (s.last_launch > last.sequence) {
      return Cover::not_yet;
    }
    *event = last.event;  // nothing was launched there since
    *covered = last.sequence;
    return Cover::marker;
  }
  std::uint64_t low = s.written > kKept ? s.written - kKept : 0;
  std::uint64_t high = s.written - 1;
  while (low < high) {  // the earliest with sequence or more
    const std::uint64_t middle = (low + high) / 2;
    const Marker& marker = s.ring[middle % kKept];
    if (marker.event != nullptr && marker.sequence >= sequence) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *event = s.ring[low % kKept].event;
  *covered = s.ring[low % kKept].sequence;
  return *event != nullptr ? Cover::marker : Cover::not_yet;
}

void Markers::abandon_in_child() noexcept {
  for (Stream& s : streams_) {
    s.lock.reset();
    s.written = 0;
    s.first_launch = s.last_launch = 0;
    s.since_marker = 0;
    s.ring = nullptr;  // the parent's events
  }
}

}  // namespace deepum::runtime
