// Progress markers: events of the program's own streams, recorded every marker_interval launches. An action that must wait for a
// launch waits for the earliest marker recorded after it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "records.h"
#include "spin_lock.hpp"

namespace deepum::runtime {

class Markers {
 public:
  static Markers& instance() noexcept;

  // A launch was accepted. True: a marker was recorded.
  bool launched(CUdevice device, CUstream stream, std::uint32_t stream_id, std::uint64_t sequence) noexcept;
  // Records a marker after the last launch of the stream, or of all (DEEPUM_ALL_STREAMS). True: there is a new one.
  bool flush(std::uint32_t stream_id) noexcept;
  void forget(std::uint32_t stream_id) noexcept;

  enum class Cover {
    nothing_to_wait,  // no launch up to the sequence is on that stream
    marker,           // *event, recorded after all of them
    not_yet           // a marker is still to come
  };
  // *covered: what the marker covers; waiting for a later marker of a stream makes waiting for an earlier one needless.
  Cover cover(std::uint32_t stream_id, std::uint64_t sequence, CUevent* event, std::uint64_t* covered) noexcept;

  void abandon_in_child() noexcept;

 private:
  static constexpr std::uint32_t kKept = 1024;  // markers of a stream; older ones lend their events to new ones

  struct Marker {
    std::uint64_t sequence = 0;
    CUevent event = nullptr;
  };
  struct Stream {
    SpinLock lock;
    CUstream handle = nullptr;
    CUdevice device = 0;
    std::uint32_t since_marker = 0;
    std::uint64_t first_launch = 0, last_launch = 0;
    std::uint64_t written = 0;  // markers ever; the last kKept of them are in the ring
    Marker* ring = nullptr;
  };
  bool record(Stream& stream, std::uint64_t sequence) noexcept;

  Stream streams_[DEEPUM_MAX_STREAMS];
};

}  // namespace deepum::runtime
