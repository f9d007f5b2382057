// How often the runtime and the simulation ask what is free of a device while the daemon wants to
// know. Definitions only.
#pragma once

#include <cstdint>

namespace deepum::mover {

// Launches between two questions, besides one at each allocation and after each wait. A question
// takes the driver some microseconds, as long as a few launches.
inline constexpr std::uint32_t kReadingInterval = 64;

}  // namespace deepum::mover
