// The program's launches, as hooks tell of them: each waits for its moves, in lock-step or at a
// gate, and is marked on its stream.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::runtime {

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
// Memory of PyTorch's is about to be handed out, so many bytes of it: where launches wait at gates
// this thread waits, for two milliseconds at most, until the mover has processed what has been
// decided so far, and may have dropped the memory's content. From then on it may not.
void before_handout(std::uint64_t bytes) noexcept;

}  // namespace deepum::runtime
