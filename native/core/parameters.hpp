// The tuned numbers of the core as C++ sees them.
#pragma once

#include <array>
#include <cstdint>

#include "parameters.h"

namespace deepum::core {

inline constexpr std::uint32_t kMostOfParameter = 1u << 20;

// All of them, one after the other.
using ParameterValues =
    std::array<std::uint32_t, sizeof(deepum_core_parameters) / sizeof(std::uint32_t)>;

deepum_core_parameters default_parameters();
// Whether each is at least 1, since shares are divisors, and at most kMostOfParameter.
bool in_range(const deepum_core_parameters& parameters);

}  // namespace deepum::core
