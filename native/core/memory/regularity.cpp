#include "memory/regularity.hpp"

#include <algorithm>

namespace deepum::core {

bool Regularity::note(LaunchIndex launch, std::uint64_t iteration,
                      const deepum_regularity_parameters& parameters) {
  const std::uint64_t gap = launch - last_;
  const bool begins = last_ == 0 || gap > iteration / parameters.burst_gap;
  const bool irregular = last_ != 0 && iteration != 0 &&
                         (begins ? gap < iteration - iteration / parameters.period_tolerance
                                 : launch - burst_began_ > iteration / parameters.period_tolerance);
  last_ = launch;
  burst_began_ = begins ? launch : burst_began_;
  irregular_in_a_row_ = irregular ? std::min(irregular_in_a_row_ + 1, parameters.most_irregular)
                        : begins  ? 0
                                  : irregular_in_a_row_;
  last_irregular_ = irregular ? launch : last_irregular_;
  return irregular_in_a_row_ == parameters.most_irregular;
}

bool Regularity::once_an_iteration(LaunchIndex launch, std::uint64_t iteration,
                                   const deepum_regularity_parameters& parameters) const {
  return last_ != 0 && launch - last_ <= iteration + iteration / parameters.period_tolerance &&
         (last_irregular_ == 0 || launch - last_irregular_ > 2 * iteration);
}

}  // namespace deepum::core
