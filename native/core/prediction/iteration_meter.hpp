// How long an iteration is, in launches and in work: the longest way back to the same launch, of
// the latest two iterations. It advances the clock's `iteration` and `work`.
#pragma once

#include <cstdint>
#include <span>

#include "clock.hpp"
#include "memory/block_use.hpp"
#include "parameters.h"

namespace deepum::core {

class IterationMeter {
 public:
  IterationMeter(Clock& now, const deepum_iteration_parameters& parameters)
      : now_(now), parameters_(parameters) {}
  // The launch at hand came so many launches after the same one before; 0: there was none.
  void launched(std::uint64_t period);
  // It touches those blocks.
  void touched(std::span<const Access> accesses);
  // What launches touched in the latest iteration, or in the present one, if that is more.
  Work work() const { return work_; }

 private:
  Clock& now_;
  const deepum_iteration_parameters& parameters_;
  std::uint64_t longest_ = 0;      // way back, since
  LaunchIndex measured_from_ = 0;  // that launch
  Work work_ = 0;
  Work iteration_began_work_ = 0;    // when the present iteration began,
  LaunchIndex iteration_began_ = 0;  // at that launch
};

}  // namespace deepum::core
