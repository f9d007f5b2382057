// How close the program's progress markers lie to each other, and how far back they reach, for the
// runtime and the simulation. Definitions only.
#pragma once

#include <cstdint>

namespace deepum::mover {

// A move waits for the marker behind the launch that it has to wait for. Launches that touch much
// take long, so that the next of every sixteenth comes late: there is one behind 256 MiB, too, a
// third of a millisecond's work at 900 GB/s.
inline constexpr std::uint64_t kMarkedBlocks = 128;
// Launches between two of them while it is asked what is free (reading_limits.hpp): the closer they
// lie, the better it is known how much of what was launched is in the memory that is not free.
inline constexpr std::uint32_t kMarkerIntervalOfReadings = 2;
// Of a stream. Where launches wait at gates each has a marker of its own, and a launch queue of the
// driver's holds 1024: to wait for a later one instead, which may lie behind a gate, would be to
// wait for oneself.
inline constexpr std::uint32_t kMarkersKept = 2048;

}  // namespace deepum::mover
