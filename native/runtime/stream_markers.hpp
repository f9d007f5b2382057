// Progress markers: for every stream of the program a few CUDA events, each known to lie behind all
// launches up to a sequence.
//
// A marker per launch would cost more than the launch's hook; one is recorded every
// `marker_interval` launches of a stream, or behind fewer that touch much memory and so take long
// (marker_limits.hpp), when the program is about to wait, and for a stream that fell idle when the
// mover asks for it. Whoever needs "behind launch S" takes the first marker at or after S.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "event_ring.hpp"
#include "marker_limits.hpp"
#include "records.h"
#include "spin_lock.hpp"
#include "zero_pages.hpp"

namespace deepum::runtime {

struct Marker {
  // All launches of the stream up to here lie before the event; 0: no marker.
  std::uint64_t sequence = 0;
  std::uint64_t first = 0;  // of those that the marker before it does not cover
  CUevent event = nullptr;
  CUcontext context = nullptr;
  // Rises when the event is recorded anew: whoever used it in the meantime must look again.
  std::uint32_t generation = 0;
  // Of the stream id: another stream's markers say nothing about this one's.
  std::uint32_t incarnation = 0;
  std::uint64_t number = 0;  // of the stream's markers, from 0
};

enum class Cover {
  kNothing,  // nothing to wait for
  kMarker,   // wait for the marker
  kNotYet    // launches up to the sequence are still without a marker
};

// One stream; its id may be given out again after it was destroyed.
class StreamMarkers {
 public:
  static constexpr std::uint32_t kKept = mover::kMarkersKept;

  // Reserves a launch's place in the ring; it counts as in flight until `settled`. One for which
  // there is no room lies before markers like any other: it gets a sequence between those before it
  // and those after it, which no event has.
  EventRing::Place reserve(EventRing& ring, std::uint32_t words, std::uint64_t* sequence) noexcept;
  // The driver took the launch, or refused it. True if a marker is due: `interval` launches have
  // gone by since the last one, or they may touch kMarkedBlocks. `blocks`: that this one may touch.
  bool settled(bool accepted, std::uint32_t interval, std::uint64_t blocks) noexcept;
  // A launch that was counted as in flight elsewhere. As `settled`.
  bool accepted(std::uint64_t sequence, std::uint32_t interval, std::uint64_t blocks) noexcept;
  // Who launches here: the context, and for CU_STREAM_PER_THREAD the thread, that markers can be
  // recorded from.
  void adopt(CUstream stream, CUcontext context) noexcept;
  bool is(CUstream handle) noexcept;  // for the calling thread and its context

  // Records a marker behind the last launch, unless there is one. `own`: right after a launch on
  // this stream by this thread; else it is checked that this is the place to do it. Calls the
  // driver. True: there is a new marker, for launches up to `limit` at most.
  bool record(bool own, std::uint64_t limit = UINT64_MAX) noexcept;
  // The launch of that sequence, which a thread is about to make, is the only one that lies before
  // no marker, and none is being recorded.
  bool only_unmarked(std::uint64_t sequence) noexcept;
  // Sequence: the driver has answered all launches up to it that were counted as in flight here.
  std::uint64_t settled_up_to() noexcept;
  // Records the event behind the launches that the driver has; the last one's sequence, 0 when this
  // is not the time or place to do it.
  std::uint64_t record_behind(CUevent event, CUcontext context) noexcept;
  void destroyed(CUstream stream) noexcept;  // about to be, by this thread
  void context_destroyed(CUcontext context) noexcept;

  // What lies behind all launches up to `sequence`, earliest first: a marker, and before it the
  // last one of each earlier stream that had the id, whose work may go on after it was destroyed.
  // kMarker if there are any.
  struct Markers {
    std::uint32_t count = 0;
    Marker of[kKept];
  };
  Cover cover(std::uint64_t sequence, Markers* found) noexcept;
  // Looks only at launches that the driver does not have yet.
  Cover cover_in_flight(std::uint64_t sequence) noexcept;
  bool still(const Marker& marker) noexcept;

  // How far the stream is on the GPU, as its markers tell.
  struct Reached {
    // Sequence: all its launches up to that one are done; UINT64_MAX: all are.
    std::uint64_t completed = UINT64_MAX;
    std::uint64_t begun = 0;  // and none behind that one has begun
  };
  Reached reached() noexcept;
  // The last so many markers, kKept at most, are not complete.
  bool has_outstanding(std::uint32_t markers) noexcept;

  // What is launched from here on; false: it cannot be made to.
  bool wait(CUevent event) noexcept;
  // Null: there is none, or it cannot be waited on from elsewhere.
  CUstream waitable() noexcept;
  // Null: of another one, or a thread's own default stream, or capturing.
  CUstream in_context(CUcontext context) noexcept;
  CUstream stream() const noexcept { return stream_.load(std::memory_order_relaxed); }
  std::uint64_t emitted() noexcept;
  bool unmarked() const noexcept { return unmarked_.load(std::memory_order_relaxed) != 0; }
  // Some launch of this stream, or of an earlier one with its id, lies before no marker and never
  // will: to cover it is a guess.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kMostFailures = 4;

  // Under the lock. Sequence: the driver has answered all launches up to it.
  std::uint64_t answered() const noexcept { return in_flight_ ? first_in_flight_ - 1 : emitted_; }
  bool claim(CUcontext context, std::uint64_t limit, std::uint64_t* first, std::uint64_t* sequence,
             Marker* reused) noexcept;
  bool still_needed(const Marker& reused) noexcept;
  bool due(std::uint32_t interval, std::uint64_t blocks) noexcept;
  void publish(const Marker& marker) noexcept;
  void withdraw(std::uint64_t first, CUevent event, CUcontext context, bool tried) noexcept;
  bool mine_to_record(CUcontext current) noexcept;
  bool record_in(CUcontext current, bool own, std::uint64_t limit) noexcept;

  SpinLock lock_;
  std::uint64_t emitted_ = 0;          // last launch
  std::uint64_t first_in_flight_ = 0;  // no launch in flight is older
  std::uint32_t in_flight_ = 0;        // launches that the driver does not have yet
  std::uint32_t since_marker_ = 0;     // launches
  std::uint64_t blocks_since_marker_ = 0;
  std::atomic<std::uint64_t> unmarked_{0};  // the first launch after the last marker, 0: none
  std::atomic<CUstream> stream_{nullptr};
  CUcontext context_ = nullptr;
  pthread_t thread_{};
  std::uint32_t incarnation_ = 0;
  std::uint32_t failures_ = 0;  // to record, in a row
  bool recording_ = false;
  std::atomic<bool> incomplete_{false};
  std::uint64_t count_ = 0;  // markers ever made; the last kKept of them are in kept_
  ZeroPages<Marker> kept_{kKept};
};

}  // namespace deepum::runtime
