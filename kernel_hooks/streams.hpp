// Stream ids and stream capture: cheap answers for every launch.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::hooks {

struct StreamRef {
  CUstream handle;   // never 0: the legacy and per-thread streams under their own handles
  std::uint32_t id;  // < DEEPUM_MAX_STREAMS; 63 for each stream beyond the 63rd
  int device;        // ordinal; -1: no context
  // Differs where another stream has the handle and the id now; 0: not known, the id is shared.
  std::uint64_t incarnation;
};

// stream 0 is the thread's own if per_thread. The first use of a stream gives it the lowest free
// id.
StreamRef stream_of(CUstream stream, bool per_thread) noexcept;

void stream_created(CUstream stream) noexcept;
// Before the driver destroys it: says so to the session and frees the id.
void stream_ends(CUstream stream) noexcept;
void forget_streams_of(CUcontext context) noexcept;  // it has ended, and they with it

// Waits for every stream the program has in the current context, or had and left work behind on,
// which is what cuCtxSynchronize promises, without waiting for the mover's. False: not all of them
// can be known (green contexts, other threads' own streams...): call the driver's.
bool synchronise_program_streams(CUresult* result) noexcept;
void streams_unknowable() noexcept;  // from now on synchronise_program_streams is false

// Nothing of ours may happen on a stream that is capturing. While no capture is under way anywhere
// this costs one load; during one it asks the driver, whose cuStreamIsCapturing is legal then.
bool capturing(const StreamRef& stream) noexcept;
bool any_capture() noexcept;
void capture_began(const StreamRef& stream) noexcept;
void capture_ended(const StreamRef& stream) noexcept;

void abandon_streams_in_child() noexcept;

}  // namespace deepum::hooks
