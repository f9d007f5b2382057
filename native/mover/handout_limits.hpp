// How long memory that is handed out waits for the mover, which may drop its content until then, in
// the runtime and in the simulation. Definitions only.
#pragma once

#include <cstdint>

namespace deepum::mover {

// Bytes. Of what is smaller hardly a whole UM block is dead, so that none is dropped.
inline constexpr std::uint64_t kAwaitedHandout = 1u << 20;
inline constexpr long kHandoutNapNanoseconds = 20000;
// Each some 70 us long, with what a timer adds: half a second. The mover is that far behind a
// program that has launched many launches of gigabytes, which it moves block by block.
inline constexpr std::uint32_t kMostNaps = 7000;
// Launches that are not complete: with fewer the GPU is about to wait for the host, and a copy
// costs less than a GPU that is idle.
inline constexpr std::uint32_t kLeastOutstanding = 16;

}  // namespace deepum::mover
