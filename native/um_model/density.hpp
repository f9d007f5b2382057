// The driver's density prefetcher inside one UM block (uvm_perf_prefetch.c): a fault is grown to
// the largest subtree of 64 KiB regions of which more than 51 % are there or wanted.
#pragma once

#include <bit>
#include <cstdint>

namespace deepum::um_model {

using Regions = std::uint32_t;  // one bit for each 64 KiB of a 2 MiB block, lowest address first
inline constexpr std::uint64_t kRegionBytes = 64ull << 10;
inline constexpr Regions kAllRegions = 0xffffffffu;

inline std::uint64_t bytes_of(Regions regions) noexcept {
  return static_cast<std::uint64_t>(std::popcount(regions)) * kRegionBytes;
}

// Regions touched by [low, high) of a block, offsets in bytes, 0 <= low < high <= 2 MiB.
inline Regions regions_touched(std::uint64_t low, std::uint64_t high) noexcept {
  const unsigned first = static_cast<unsigned>(low / kRegionBytes),
                 last = static_cast<unsigned>((high - 1) / kRegionBytes);
  return (kAllRegions >> (31 - last)) & (kAllRegions << first);
}

struct Grown {
  Regions moved;  // regions that come to the device: the wanted ones and what the prefetcher adds
  int faults;     // regions that faulted; the others were there by the time they would have
};

// What sweeping over `wanted` in ascending order brings when `present` is on the device already.
Grown grow_faults(Regions present, Regions wanted, bool prefetcher) noexcept;

}  // namespace deepum::um_model
