#include "memory/regularity.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

// Part of an iteration after which a use begins another burst.
constexpr std::uint64_t kBurstGap = 16;
// Part that a burst may take, and that periods may differ by.
constexpr std::uint64_t kPeriodTolerance = 8;
// Uses in a row after which the tensor is used otherwise.
constexpr std::uint32_t kMostIrregular = 6;

}  // namespace

bool Regularity::note(LaunchIndex launch, std::uint64_t iteration) {
  const std::uint64_t gap = launch - last_;
  const bool begins = last_ == 0 || gap > iteration / kBurstGap;
  const bool irregular = last_ != 0 && iteration != 0 &&
                         (begins ? gap < iteration - iteration / kPeriodTolerance
                                 : launch - burst_began_ > iteration / kPeriodTolerance);
  last_ = launch;
  burst_began_ = begins ? launch : burst_began_;
  irregular_in_a_row_ = irregular ? std::min(irregular_in_a_row_ + 1, kMostIrregular)
                        : begins  ? 0
                                  : irregular_in_a_row_;
  last_irregular_ = irregular ? launch : last_irregular_;
  return irregular_in_a_row_ == kMostIrregular;
}

bool Regularity::once_an_iteration(LaunchIndex launch, std::uint64_t iteration) const {
  return last_ != 0 && launch - last_ <= iteration + iteration / kPeriodTolerance &&
         (last_irregular_ == 0 || launch - last_irregular_ > 2 * iteration);
}

}  // namespace deepum::core
