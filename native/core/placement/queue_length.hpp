// The driver's queue of launches.
#pragma once

#include <cstdint>

namespace deepum::core {

// A queue below that does not let the host run ahead of the GPU: launches have to be placed before
// they come.
inline constexpr std::uint32_t kShortQueue = 64;

}  // namespace deepum::core
