// What the program does comes after the discards that were made before it (discards.hpp): on a
// stream where that can be made to wait, else by this thread's waiting.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::runtime {

// What is launched on the stream from here on comes after all discards so far.
void follow_discards(CUstream stream) noexcept;
// Memory is about to be used again: all that the program launches from here on, on any stream, lies
// behind the discards of it.
void use_after_discards(std::uint64_t address, std::uint64_t bytes) noexcept;
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

}  // namespace deepum::runtime
