#include "extras/remote_trial.hpp"

#include <utility>

namespace deepum::core {

bool RemoteTrial::over() const {
  return trials_ >= parameters_.most_trials || changes_ > parameters_.most_changes;
}

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
    meter_.begin(position_, iteration_, 0, parameters_.measured);
  }
}

void RemoteTrial::place() {
  phase_ = Phase::kPlaced;
  turn_ = Turn::kPlace;
  meter_.begin(position_, iteration_, parameters_.settling, parameters_.measured);
}

void RemoteTrial::launched(std::uint64_t position, std::uint64_t sequence,
                           std::uint64_t iteration) {
  position_ = position;
  const std::uint64_t change =
      iteration > iteration_ ? iteration - iteration_ : iteration_ - iteration;
  if (change > iteration_ / parameters_.alike_share) {
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
  const bool hopeless = phase_ == Phase::kPlaced &&
                        meter_.taken() > parameters_.hopeless * pace_ *
                                             static_cast<double>(meter_.passed() + iteration_);
  if (!pace && !hopeless) {
    return;
  }
  known_at_ = position_;
  if (phase_ == Phase::kBefore) {
    pace_ = *pace;
    place();
  } else if (!hopeless && *pace < pace_ * (1 - 1.0 / parameters_.better_share)) {
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
