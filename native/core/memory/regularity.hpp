// When launches use a tensor: whether all of its uses come close together, once an iteration.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "parameters.h"

namespace deepum::core {

class Regularity {
 public:
  // Launch number `launch` uses it. True: for several uses in a row it was used at another time
  // than once an iteration, which a launch left out of one iteration does not explain.
  bool note(LaunchIndex launch, std::uint64_t iteration,
            const deepum_regularity_parameters& parameters);
  bool once_an_iteration(LaunchIndex launch, std::uint64_t iteration,
                         const deepum_regularity_parameters& parameters) const;

 private:
  LaunchIndex last_ = 0;            // launch that used it last; 0: none
  LaunchIndex burst_began_ = 0;     // first launch of the present burst of uses
  LaunchIndex last_irregular_ = 0;  // launch that used it at another time last; 0: none
  std::uint32_t irregular_in_a_row_ = 0;
};

}  // namespace deepum::core
