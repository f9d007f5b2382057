#include "prediction/iteration_meter.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {

void IterationMeter::launched(std::uint64_t period) {
  longest_ = std::max(longest_, period);
  now_.iteration = std::max(now_.iteration, longest_);
  if (now_.launch - measured_from_ >
      2 * std::max<std::uint64_t>(longest_, parameters_.least_period)) {
    now_.iteration = std::exchange(longest_, 0);
    measured_from_ = now_.launch;
  }
}

void IterationMeter::touched(std::span<const Access> accesses) {
  ++now_.work;
  for (const Access& access : accesses) {
    now_.work += access.span.count;
  }
  work_ = std::max(work_, now_.work - iteration_began_work_);
  if (now_.launch - iteration_began_ >= now_.iteration) {
    work_ = now_.work - std::exchange(iteration_began_work_, now_.work);
    iteration_began_ = now_.launch;
  }
}

}  // namespace deepum::core
