#include "density.hpp"

namespace deepum::um_model {
namespace {

constexpr int kThresholdPercent = 51;  // uvm_perf_prefetch_threshold's default

Regions subtree(unsigned region, unsigned size) noexcept {
  const Regions ones = size == 32 ? kAllRegions : (1u << size) - 1;
  return ones << (region / size * size);
}

Regions grow(Regions present, unsigned region) noexcept {
  Regions grown = 1u << region;
  present |= grown;
  for (unsigned size = 2; size <= 32; size *= 2) {
    const Regions tree = subtree(region, size);
    if (std::popcount(present & tree) * 100 > kThresholdPercent * static_cast<int>(size)) {
      grown = tree;
    }
  }
  return grown;
}

Grown sweep(Regions present, Regions wanted) noexcept {
  const Regions before = present;
  int faults = 0;
  for (Regions left = wanted & ~present; left != 0; left = wanted & ~present) {
    ++faults;
    present |= grow(present, static_cast<unsigned>(std::countr_zero(left)));
  }
  return {present & ~before, faults};
}

}  // namespace

Grown grow_faults(Regions present, Regions wanted, bool prefetcher) noexcept {
  if (!prefetcher) {
    return {wanted & ~present, std::popcount(wanted & ~present)};
  }
  static const Grown whole = sweep(0, kAllRegions);  // by far the commonest case
  if (present == 0 && wanted == kAllRegions) {
    return whole;
  }
  return sweep(present, wanted);
}

}  // namespace deepum::um_model
