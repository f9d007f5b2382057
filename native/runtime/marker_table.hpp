// The markers of all streams of the program: who launches finds its stream's, who waits finds those
// of a stream id.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "event_ring.hpp"
#include "records.h"
#include "spin_lock.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

class MarkerTable {
 public:
  EventRing::Place reserve(EventRing& ring, std::uint32_t stream_id, std::uint32_t words,
                           std::uint64_t* sequence) noexcept;
  void failed(std::uint32_t stream_id) noexcept;  // the driver refused the launch
  // The launch is about to be queued by this thread. True: it has a marker before it that covers
  // all launches on its stream before it, and the next one will lie behind it. False: too many
  // share the stream's id, other threads launch on it, or no marker could be recorded.
  bool mark_before(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence) noexcept;
  // The driver took the launch. True: a marker was recorded.
  bool launched(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence,
                std::uint32_t interval, std::uint64_t blocks) noexcept;
  CUstream stream(std::uint32_t stream_id, CUcontext context) noexcept {
    return stream_id < kShared ? streams_[stream_id].in_context(context) : nullptr;
  }
  bool is_a_threads_own(std::uint32_t stream_id) const noexcept {
    return stream_id < kShared && streams_[stream_id].stream() == CU_STREAM_PER_THREAD;
  }
  // It was entered, and has not been destroyed.
  bool knows(CUstream stream, std::uint32_t stream_id) noexcept {
    return of(stream, stream_id) != nullptr;
  }
  // It is about to be launched on, in the current context. Null: too many share its id.
  StreamMarkers* enter(CUstream stream, std::uint32_t stream_id) noexcept;
  // Every stream that was entered waits for the event. False: one cannot be made to (a thread's own
  // default stream, or one that captures); some may wait all the same.
  bool wait_on_all(CUevent event) noexcept;
  bool all_can_wait() noexcept;
  // Of some stream: the last so many are not complete.
  bool has_outstanding(std::uint32_t markers) noexcept;
  // Of all streams: all launches up to a sequence, and none behind another.
  StreamMarkers::Reached reached() noexcept;
  // `cover` tells the truth of these stream ids: none of them has launches that the driver refused
  // to record a marker behind.
  bool all_marked(std::uint64_t stream_mask) noexcept;
  // Stream ids with launches for which the ring had no room: the daemon may not know that these
  // were ever launched on.
  std::uint64_t unreported_streams() const noexcept {
    return unreported_.load(std::memory_order_seq_cst);
  }
  // Calls back with each id that was ever launched on, but the shared one, and its stream.
  template <typename F>
  void each_stream(F each) noexcept {
    for (std::uint64_t used = used_.load(std::memory_order_seq_cst) & ~(1ull << kShared); used != 0;
         used &= used - 1) {
      const auto id = static_cast<std::uint32_t>(__builtin_ctzll(used));
      each(id, streams_[id]);
    }
  }
  bool flush(std::uint32_t stream_id) noexcept;  // DEEPUM_ALL_STREAMS: all
  void destroyed(CUstream stream, std::uint32_t stream_id) noexcept;
  void context_destroyed(CUcontext context) noexcept;

  // What has to be waited for until all launches on the stream id up to `sequence` are done: calls
  // back for each marker. False: some are still without a marker. For the mover's thread alone.
  template <typename F>
  bool cover(std::uint32_t stream_id, std::uint64_t sequence, F each) noexcept {
    const auto one = [&](StreamMarkers& stream) {
      const Cover answer = stream.cover(sequence, &found_);
      for (std::uint32_t i = 0; i < found_.count; ++i) {
        each(stream, found_.of[i]);
      }
      return answer != Cover::kNotYet;
    };
    if (stream_id < kShared) {
      return one(streams_[stream_id]);
    }
    if (streams_[kShared].cover_in_flight(sequence) == Cover::kNotYet) {
      return false;
    }
    const std::uint32_t count = sharing_count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!one(sharing_[i])) {
        return false;
      }
    }
    return true;
  }
  // The mover waits for a marker of this stream, on which nothing may be launched for a long time.
  void want(std::uint32_t stream_id) noexcept {
    wanted_.fetch_or(1ull << stream_id, std::memory_order_relaxed);
  }
  // Rises with every marker.
  std::uint64_t epoch() const noexcept { return epoch_.load(std::memory_order_seq_cst); }

 private:
  static constexpr std::uint32_t kShared = DEEPUM_MAX_STREAMS - 1;
  // Streams beyond are not waited for: a move that comes too early costs a fault.
  static constexpr std::uint32_t kMostSharing = 64;

  StreamMarkers* of(CUstream stream, std::uint32_t id) noexcept;  // null: it is not known
  StreamMarkers* adopt_sharing(CUstream stream, CUcontext context) noexcept;
  template <typename F>
  bool for_all(F each) noexcept;
  bool record(StreamMarkers& stream, bool own, std::uint64_t limit = UINT64_MAX) noexcept;
  bool serve_wanted(std::uint32_t own_id) noexcept;

  // The last one only counts what is in flight on the shared id.
  StreamMarkers streams_[DEEPUM_MAX_STREAMS];
  SpinLock sharing_lock_;
  std::atomic<std::uint32_t> sharing_count_{0};
  StreamMarkers sharing_[kMostSharing];
  std::atomic<std::uint64_t> wanted_{0};
  std::atomic<std::uint64_t> used_{0};  // ids ever launched on
  std::atomic<std::uint64_t> unreported_{0};
  std::atomic<std::uint64_t> epoch_{0};
  StreamMarkers::Markers found_;  // of the mover's thread; too large to be made for each question
};

}  // namespace deepum::runtime
