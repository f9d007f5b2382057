// This process's session with the daemon, as hooks see it: how it begins and ends, what it is told,
// and what the daemon wants to know.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "records.h"

namespace deepum::runtime {

// Called by the hooks when a context is current for the first time on a device: connects to (or
// starts) the daemon once a process, and emits the device's event. Cheap when already done. False:
// the driver cannot tell yet what is free of the device, or another thread is asking it; call
// again.
bool enter_device(CUdevice device, CUcontext context) noexcept;

bool has_session() noexcept;
// Whether somebody is to be told of observed faults, or of how far streams are: by DEEPUM_FAULTS,
// and by the daemon (deepum_ring_control.wants_faults). False without a session.
bool faults_wanted() noexcept;
// Whether it is of use to the daemon what launches only read (deepum_ring_control.wants_reads).
bool reads_wanted() noexcept;

// Around the taking of observed faults, by one thread at a time with the program's context current:
// tells how far streams are.
void begin_progress() noexcept;
void tell_progress() noexcept;

// The context at hand is of the device, its memory grew, or it was waited for: tells how much of it
// is free, if the daemon wants to know (deepum_ring_control.wants_free_memory). Not while a stream
// captures.
void read_free_memory(CUdevice device) noexcept;

// Copies the record into the event ring and returns its sequence; 0 when there is no session or the
// ring is full (the record is then counted as lost). Never blocks, never calls the driver, safe
// from any thread.
std::uint64_t emit(deepum_event_header* record) noexcept;

// The driver refused to share managed memory that the program takes for device memory: counted for
// the daemon.
void handle_refused() noexcept;

// GPU and host memory together had no room for an allocation; how much there is of both, in bytes:
// told to the daemon.
void allocation_refused() noexcept;
void allocatable(std::uint64_t bytes) noexcept;

// The context and all streams and events in it have ended: nothing of it is used again. Its device
// is entered anew if need be.
void context_destroyed(CUcontext context) noexcept;

// Orderly end; also run at exit. And the child's side of fork: no session, no threads, plain
// unified memory.
void leave() noexcept;
void abandon_in_child() noexcept;

}  // namespace deepum::runtime
