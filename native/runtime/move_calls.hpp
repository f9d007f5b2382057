// The driver's calls that move and advise managed memory, in whichever form the driver has.
// Failures are the caller's to report.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "mover_backend.hpp"

namespace deepum::runtime {

using Span = mover::Range;
using mover::kMostInBatch;

constexpr int kHost = -1;

// True where several spans can go in one call (CUDA 13.0), unordered among themselves.
bool has_batches() noexcept;
// Queues the move of 1 to kMostInBatch spans on the stream; more than one only where has_batches().
// location: CUDA ordinal or kHost.
CUresult prefetch(const Span* spans, std::size_t count, int location, CUstream stream) noexcept;
// False where the driver has no discards, or refuses them.
bool can_discard() noexcept;
void refuse_discards() noexcept;  // from here on
// Drops the content of the span, wherever it is, in stream order. Nothing is copied. The GPU's
// memory stays with the span until the driver needs it, which takes it before all other memory and
// copies nothing. `populated`: launches wait until what they use has been prefetched. Else, and
// where the driver has no other discard, the span is prefetched to the host as well. That costs as
// much as an eviction, since the kernel module (580) maps pages there; but a kernel that faults on
// it waits for a third of a millisecond a block, and for four on memory that was only discarded.
CUresult drop_content(const Span& span, bool populated, CUstream stream) noexcept;
// Takes effect at once.
CUresult advise(const Span& span, CUmem_advise advice, int location) noexcept;

}  // namespace deepum::runtime
