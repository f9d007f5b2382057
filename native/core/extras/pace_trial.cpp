#include "extras/pace_trial.hpp"

#include <algorithm>

namespace deepum::core {

void PaceTrial::begin(Phase phase, std::uint64_t settling) {
  phase_ = phase;
  copies_ = copied_;
  meter_.begin(position_, iteration_, settling, parameters_.measured);
}

void PaceTrial::launched(std::uint64_t position, std::uint64_t sequence, std::uint64_t iteration,
                         std::uint64_t copied) {
  position_ = position;
  if (over() || iteration == 0) {
    return;
  }
  copied_ = copied;
  meter_.launched(position, sequence);
  const std::uint64_t change =
      iteration > iteration_ ? iteration - iteration_ : iteration_ - iteration;
  if (change > iteration_ / parameters_.alike_share) {
    iteration_ = iteration;
    begin(Phase::kWith, parameters_.learning);
    if (++changes_ > parameters_.most_changes) {
      decide(Phase::kBetterWith);
    }
  }
}

void PaceTrial::completed(std::uint64_t sequence, std::uint64_t at) {
  if (over()) {
    return;
  }
  if (const auto pace = meter_.completed(sequence, at)) {
    end(*pace);
  }
}

void PaceTrial::end(double pace) {
  if (phase_ == Phase::kWithout) {
    relearned_ = position_ + parameters_.settling * iteration_;
    const Phase better = pace < pace_ ? Phase::kBetterWithout : Phase::kBetterWith;
    pace_ = std::min(pace, pace_);
    decide(better);
  } else if (copied_ == copies_) {
    begin(Phase::kWith, parameters_.learning);  // there is nothing to compare yet
  } else {
    pace_ = pace;
    begin(Phase::kWithout, parameters_.settling);
  }
}

void PaceTrial::decide(Phase phase) {
  phase_ = phase;
  meter_.stop();
}

}  // namespace deepum::core
