// The GPU's time as PROGRESS events tell it. Logic only: no driver.
#pragma once

#include <cmath>
#include <cstdint>

namespace deepum {

// From milliseconds between two events, as cuEventElapsedTime tells them; 0 is left for what is not
// known.
inline std::uint64_t completed_at(float milliseconds) noexcept {
  return milliseconds >= 0 ? 1 + static_cast<std::uint64_t>(
                                     std::llround(static_cast<double>(milliseconds) * 1000))
                           : 0;
}

}  // namespace deepum
