// Whether pages of this process hold anything, from the kernel's page map (bit 63: present, 62:
// swapped; Documentation/admin-guide/mm/pagemap.rst).
#pragma once

#include <array>
#include <cstdint>

namespace deepum::simgpu {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kPagesAtOnce = 512;

// present[i]: page i of the `count` from the address `first` on may hold data. Pages of private
// anonymous memory without it read as zeros. False: the kernel does not tell.
bool read_page_map(std::uint64_t first, std::uint64_t count,
                   std::array<bool, kPagesAtOnce>& present);

}  // namespace deepum::simgpu
