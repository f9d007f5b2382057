// This process's session with the daemon: where hooks put events and where launches wait in
// lock-step mode.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "deferral.hpp"
#include "plain_rules.hpp"
#include "records.h"

namespace deepum::runtime {

enum class Faults { kAuto, kOn, kOff, kTimes };
enum class FaultSources { kAuto, kCupti, kUvmTools };

// A size for each GPU, by ordinal.
struct DeviceSizes {
  std::uint64_t bytes[DEEPUM_MAX_DEVICES];
  explicit constexpr DeviceSizes(std::uint64_t all) noexcept : bytes() {
    for (std::uint64_t& each : bytes) {
      each = all;
    }
  }
  constexpr std::uint64_t of(CUdevice device) const noexcept {
    return bytes[device < 0 ? 0 : device < DEEPUM_MAX_DEVICES ? device : DEEPUM_MAX_DEVICES - 1];
  }
};

// The shim's own settings; everything else travels to the daemon as text. Read once, at load, from
// the environment.
struct ShimSettings {
  bool disabled = false;   // DEEPUM_DISABLE
  bool lock_step = false;  // DEEPUM_SYNC
  // DEEPUM_LOG: 0 silent, 1 warnings, 2 info, 3 debug.
  int log_level = 1;
  // DEEPUM_MANAGED_LIMIT, bytes, over all processes of the user on a GPU.
  std::uint64_t managed_limit = UINT64_MAX;
  DeviceSizes gpu_memory{UINT64_MAX};  // DEEPUM_GPU_MEMORY, bytes of each GPU
  // DEEPUM_GPU_RESERVE, bytes of each GPU that managed memory leaves free.
  std::uint64_t gpu_reserve = 128ull << 20;
  // DEEPUM_HOST_MEMORY, bytes; UINT64_MAX: 90 % of what is available at the first allocation.
  std::uint64_t host_memory = UINT64_MAX;
  // DEEPUM_HOST_MEMORY_VIRTUAL: addresses without memory behind them, any budget is sound.
  bool host_memory_is_virtual = false;
  // DEEPUM_MANAGED_THRESHOLD, bytes: smaller allocations stay device memory.
  std::uint64_t managed_threshold = 1ull << 20;
  // DEEPUM_PLAIN_MEMORY: which others stay device memory.
  PlainRules plain_memory;
  bool prefetch = true;  // DEEPUM_PREFETCH: carry prefetches out
  // DEEPUM_FAULTS: auto, while the daemon asks for them; on; off; times, no faults, but how far
  // streams are, while the daemon asks for it.
  Faults faults = Faults::kOff;
  // DEEPUM_FAULT_SOURCE: auto, CUPTI if it can be had, else uvm-tools; cupti; uvm-tools.
  FaultSources fault_source = FaultSources::kAuto;
  // DEEPUM_GATES: under pressure, out of lock-step, launches wait for their moves.
  bool gates = true;
  // DEEPUM_MOVES: stream, the driver defers them; host, it blocks; auto, to be found.
  Deferral deferral = Deferral::kUnknown;
  // DEEPUM_FAULT_INTERVAL, launches in lock-step between two looks for observed faults.
  std::uint32_t fault_interval = 64;
  // DEEPUM_MARKER_INTERVAL, launches a stream between two progress markers.
  std::uint32_t marker_interval = 16;
  // DEEPUM_DAEMON_SILENCE, seconds after which a daemon that takes nothing is given up.
  std::uint64_t daemon_silence = 10;
  // DEEPUM_HANDOVER_BYTES, given to the driver a direction and not yet complete; lock-step: no
  // limit.
  std::uint64_t handover_bytes = 64ull << 20;
};
const ShimSettings& settings() noexcept;
// Why a daemon that takes nothing is given up, in words.
const char* daemon_silent() noexcept;

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

// A launch: `before_execute` after emitting its event and before forwarding the call (in lock-step
// it waits for the daemon's decisions and carries them out), `after_execute` once the driver
// accepted it (records a progress marker every marker_interval launches of the stream), whether or
// not the ring had room for its event. Neither does anything while `capturing`.
void before_execute(CUdevice device, CUstream stream, std::uint32_t stream_id,
                    std::uint64_t sequence) noexcept;
void after_execute(CUdevice device, CUstream stream, std::uint32_t stream_id) noexcept;
// Before a call of the program's in which the driver may wait for a stream with locks held that the
// mover needs: waits until no launch waits at a gate, no longer than gates go on to open.
void before_locked_wait() noexcept;
bool waits_at_gates() noexcept;  // launches do: else there is nothing to wait for
// The thread's next launch is a function's first, in which the driver may load code: it has no
// gate.
void next_launch_ungated() noexcept;
// The program is about to block: brings every stream's marker up to its last launch.
void before_synchronise(std::uint32_t stream_id) noexcept;  // DEEPUM_ALL_STREAMS for all
void stream_destroyed(CUstream stream, std::uint32_t stream_id) noexcept;
// Memory is about to be used again: all that the program launches from here on, on any stream, lies
// behind the discards of it.
void use_after_discards(std::uint64_t address, std::uint64_t bytes) noexcept;
// Memory of PyTorch's is about to be handed out, so many bytes of it: where launches wait at gates
// this thread waits, for two milliseconds at most, until the mover has processed what has been
// decided so far, and may have dropped the memory's content. From then on it may not.
void before_handout(std::uint64_t bytes) noexcept;
// Memory is about to end: this thread waits for the discards of it.
void wait_for_discards(std::uint64_t address, std::uint64_t bytes) noexcept;
// A graph is about to be launched on the stream, from which on nothing is discarded: it lies behind
// all discards.
void before_graph(CUstream stream) noexcept;
// A stream is about to wait for a value, which may be written by what is launched later on another
// one: from here on nothing is discarded, or that one might wait for a discard that waits for this.
// Nor is a launch held for moves behind launches of other streams.
void before_value_wait() noexcept;
// The context is about to end: this thread waits for the discards whose stream is in it, and no
// more are made there. If it does not end after all, `context_stays`.
void context_ending(CUcontext context) noexcept;
void context_stays(CUcontext context) noexcept;
// The context and all streams and events in it have ended: nothing of it is used again. Its device
// is entered anew if need be.
void context_destroyed(CUcontext context) noexcept;

// Orderly end; also run at exit. And the child's side of fork: no session, no threads, plain
// unified memory.
void leave() noexcept;
void abandon_in_child() noexcept;

}  // namespace deepum::runtime
