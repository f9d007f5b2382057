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
// copies nothing; with `frees` it is free at once, but then the kernel module (580) makes zeroed
// pages on the host that the next prefetch of the span copies (uvm_va_block.c,
// uvm_va_block_make_resident).
CUresult drop_content(const Span& span, bool frees, CUstream stream) noexcept;
// Takes effect at once.
CUresult advise(const Span& span, CUmem_advise advice, int location) noexcept;

}  // namespace deepum::runtime
