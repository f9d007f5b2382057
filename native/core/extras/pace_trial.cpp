#include "extras/pace_trial.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

// Iterations: what leaves is learned one use further back with each.
constexpr std::uint64_t kLearning = 9;
constexpr std::uint64_t kSettling = 3;  // iterations, after which nothing is as it was before
constexpr std::uint64_t kMeasured = 3;  // iterations
// Part of an iteration by which others may be longer or shorter.
constexpr std::uint64_t kAlike = 8;
// Of that length, after which nothing is expected to repeat.
constexpr std::uint32_t kMostChanges = 64;

}  // namespace

void PaceTrial::begin(Phase phase, std::uint64_t settling) {
  phase_ = phase;
  copies_ = copied_;
  meter_.begin(position_, iteration_, settling, kMeasured);
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
  if (change > iteration_ / kAlike) {
    iteration_ = iteration;
    begin(Phase::kWith, kLearning);
    if (++changes_ > kMostChanges) {
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
    relearned_ = position_ + kSettling * iteration_;
    const Phase better = pace < pace_ ? Phase::kBetterWithout : Phase::kBetterWith;
    pace_ = std::min(pace, pace_);
    decide(better);
  } else if (copied_ == copies_) {
    begin(Phase::kWith, kLearning);  // there is nothing to compare yet
  } else {
    pace_ = pace;
    begin(Phase::kWithout, kSettling);
  }
}

void PaceTrial::decide(Phase phase) {
  phase_ = phase;
  meter_.stop();
}

}  // namespace deepum::core
