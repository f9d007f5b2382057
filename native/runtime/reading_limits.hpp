// How often it is asked what is free of a device while the daemon wants to know. Definitions only: the simulation has the same.
#pragma once

#include <cstdint>

namespace deepum::runtime {

// Launches between two questions, besides one at each allocation and after each wait. A question takes the driver some microseconds, as
// long as a few launches.
inline constexpr std::uint32_t kReadingInterval = 64;

}  // namespace deepum::runtime
