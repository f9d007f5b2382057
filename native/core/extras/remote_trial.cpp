#include "extras/remote_trial.hpp"

#include <utility>

namespace deepum::core {
namespace {

constexpr std::uint64_t kSettling = 3;  // iterations, after which nothing is as it was before
constexpr std::uint64_t kMeasured = 3;  // iterations
// Part of an iteration by which others may be longer or shorter.
constexpr std::uint64_t kAlike = 8;
// Of that length, after which nothing is expected to repeat.
constexpr std::uint32_t kMostChanges = 64;
constexpr std::uint32_t kMostTrials = 8;
constexpr double kBetter = 1.0 / 64;  // part by which launches have to be faster
// Times what launches took before, after which nobody waits for the end.
constexpr double kHopeless = 2;

}  // namespace

bool RemoteTrial::over() const { return trials_ >= kMostTrials || changes_ > kMostChanges; }

void RemoteTrial::begin(double pace) {
  ++trials_;
  if (known_at_ != 0 && position_ - known_at_ <= iteration_) {
    pace = pace_;
  }
  pace_ = pace;
  if (pace > 0) {
    place();
  } else {
    phase_ = Phase::kBefore;
    meter_.begin(position_, iteration_, 0, kMeasured);
  }
}

void RemoteTrial::place() {
  phase_ = Phase::kPlaced;
  turn_ = Turn::kPlace;
  meter_.begin(position_, iteration_, kSettling, kMeasured);
}

void RemoteTrial::launched(std::uint64_t position, std::uint64_t sequence,
                           std::uint64_t iteration) {
  position_ = position;
  const std::uint64_t change =
      iteration > iteration_ ? iteration - iteration_ : iteration_ - iteration;
  if (change > iteration_ / kAlike) {
    iteration_ = iteration;
    changed_ = position;
    known_at_ = 0;
    ++changes_;
    abandon();
  }
  if (under_way()) {
    meter_.launched(position, sequence);
  }
}

void RemoteTrial::completed(std::uint64_t sequence, std::uint64_t at) {
  if (!under_way()) {
    return;
  }
  const auto pace = meter_.completed(sequence, at);
  const bool hopeless =
      phase_ == Phase::kPlaced &&
      meter_.taken() > kHopeless * pace_ * static_cast<double>(meter_.passed() + iteration_);
  if (!pace && !hopeless) {
    return;
  }
  known_at_ = position_;
  if (phase_ == Phase::kBefore) {
    pace_ = *pace;
    place();
  } else if (!hopeless && *pace < pace_ * (1 - kBetter)) {
    pace_ = *pace;
    end(Turn::kKeep);
  } else {
    end(Turn::kCallBack);
  }
}

void RemoteTrial::abandon() {
  if (under_way()) {
    --trials_;
    known_at_ = 0;
    end(Turn::kAbandon);
  }
}

void RemoteTrial::end(Turn turn) {
  phase_ = Phase::kNone;
  turn_ = turn;
  meter_.stop();
}

RemoteTrial::Turn RemoteTrial::turn() { return std::exchange(turn_, Turn::kNone); }

}  // namespace deepum::core
