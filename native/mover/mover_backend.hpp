// What the mover's rules ask of their surroundings: the program's progress, its memory, and
// whatever carries commands out. The runtime answers with a driver
// (native/runtime/cuda_backend.hpp), the simulation with a model
// (native/simulate/model_backend.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "commands.hpp"
#include "lanes.hpp"
#include "records.h"

namespace deepum::mover {

struct Range {
  std::uint64_t address;
  std::uint64_t bytes;
};

// A CUresult.
using Error = std::uint32_t;
inline constexpr Error kSuccess = 0;
inline constexpr Error kInvalidContext = 201;

// Ranges in one call, where the driver has calls for several.
inline constexpr std::size_t kMostInBatch = 64;

// Failures in a row, after which there are no calls, or no discards, any more.
inline constexpr std::uint32_t kMostFailures = 16, kMostFailedDiscards = 16;

class MoverBackend : public LaneEvents {
 public:
  // --- The program's progress.
  // Adds what lies behind all launches of the stream id up to the sequence. False: some of these
  // have no marker yet.
  virtual bool cover(std::uint32_t stream, std::uint64_t sequence,
                     std::vector<MarkerRef>* found) = 0;
  // Behind the stream's last launch; false: not here and now.
  virtual bool record_marker(std::uint32_t device, std::uint32_t stream) = 0;
  // A command waits for the stream's next one.
  virtual void want_marker(std::uint32_t stream) = 0;
  // Its event has not been recorded anew.
  virtual bool still(const MarkerRef& marker) = 0;
  // Stream ids with launches that the daemon may not know of.
  virtual std::uint64_t unreported_streams() = 0;

  // --- Memory. What is pinned keeps its address until it is released.
  // The command's blocks; nothing: the memory has ended.
  virtual std::optional<Range> pin(const deepum_command& command) = 0;
  virtual void release_last() = 0;
  virtual void release_all() = 0;

  // --- Lanes.
  virtual bool has_context(std::uint32_t device) = 0;
  virtual bool prepare(LaneId lane) = 0;  // the lane has a stream, and its calls can be made
  virtual bool idle(LaneId lane) = 0;     // all that is on its stream has been done
  virtual void synchronise(LaneId lane) = 0;

  // --- Calls, in stream order but for `advise_now`. They move, advise or drop what is pinned.
  // False: a call for it that lies behind an event blocks this thread.
  virtual bool defers(const deepum_command& command) const = 0;
  virtual bool has_batches() const = 0;
  virtual Error prefetch(LaneId lane, std::span<const Range> ranges, std::int32_t location) = 0;
  virtual Error advise_now(LaneId lane, std::span<const Range> ranges,
                           const AdviceList& advice) = 0;
  virtual Error serve_advice(LaneId lane, std::span<const Range> ranges,
                             const AdviceList& advice) = 0;
  virtual Error discard(LaneId lane, Range range) = 0;
  // The calls in between carry out the command, and others of its kind with it: for a profiler.
  virtual void begin_operation(const deepum_command& /*first*/, std::size_t /*commands*/,
                               std::span<const Range> /*ranges*/) noexcept {}
  virtual void end_operation() noexcept {}
  virtual void turned_off(Error error) = 0;  // so many calls in a row failed that there are no more

  // --- Discards (discard_map.hpp).
  virtual bool can_discard() = 0;         // the driver has them, and the program allows them
  virtual bool discards_forbidden() = 0;  // the program does what they could deadlock with
  // Commits the discard, if all that was launched lies before markers, all streams can be made to
  // wait and the memory is inactive.
  virtual bool commit_discard(LaneId lane, const deepum_command& command, Range range) = 0;
  // The event lies behind the discard; 0: it was not made. Follows each commitment, whatever
  // happens in between.
  virtual void discard_given(LaneId lane, std::uint64_t address, std::uint64_t id,
                             EventHandle event) noexcept = 0;
  virtual void refuse_discards(Error error) = 0;  // so many in a row failed that there are no more

  // --- Launches that are held for moves.
  // The launch's stream is known and can be made to wait.
  virtual bool can_hold(const deepum_command& hold) = 0;
  // `bringing`: index of kBringing.
  virtual void hold(const deepum_command& hold, std::size_t bringing, EventHandle event) = 0;

  // --- Gates: words, one a stream id, up to whose value launches may start.
  virtual bool gates_used() const = 0;
  virtual bool begin_gates(std::uint32_t device) = 0;  // true: they are used from here on
  virtual void end_gates(const char* why) = 0;
  // New launches have none, or have them again; those that wait at one are opened as ever.
  virtual void suspend_gates(bool suspended) = 0;
  // All that events up to it caused has been carried out as far as it can be.
  virtual void set_processed(std::uint64_t sequence) = 0;
  // The last launch that waits at the gate; 0: none ever did.
  virtual std::uint64_t last_waiter(std::uint32_t stream) = 0;
  // Rises when all have been opened, and their words given up for others.
  virtual std::uint32_t gate_epoch() = 0;
  // In the order of the writer's stream.
  virtual bool write_gate(std::uint32_t stream, std::uint32_t epoch, std::uint64_t sequence) = 0;
  // What is written from here on lies behind it.
  virtual bool gate_waits(std::uint32_t stream, EventHandle event) = 0;

  virtual void answer(const deepum_command& command, deepum_moved_status status, Error error) = 0;

 protected:
  ~MoverBackend() = default;
};

}  // namespace deepum::mover
