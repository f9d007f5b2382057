#include "prediction/launch_chain.hpp"

#include <algorithm>

namespace deepum::core {

LaunchChain::Step LaunchChain::follow(const Launch& launch, const Execution& execution) {
  if (launches_.empty()) {
    predictor_.begin();
    return {};
  }
  ++statistics_.predictions;
  Step step;
  const std::size_t at = predictor_.find(launches_, launch.id, execution);
  if (at < launches_.size()) {
    const bool right =
        at == 0 && launches_[0].id == launch.id && launches_[0].generation == launch.generation;
    statistics_.predictions_right += right ? 1 : 0;
    statistics_.operations += at;
    right_in_a_row_ += right ? 1 : 0;
    recognised_ = recognised_ || right_in_a_row_ >= settings_.parameters.prediction.recognised;
    const PredictedLaunch passed = launches_[at];
    step.passed = at + 1;
    launches_.erase(launches_.begin(),
                    launches_.begin() + static_cast<std::ptrdiff_t>(step.passed));
    if (predictor_.confirm(passed, right)) {
      return step;
    }
  } else if (predictor_.tolerate()) {
    return step;
  } else {
    const std::uint64_t divisor = predictor_.lasting_trust();
    right_in_a_row_ = divisor != 0 ? right_in_a_row_ / divisor : 0;
  }
  ++statistics_.chain_restarts;
  launches_.clear();
  predictor_.abandoned();
  predictor_.begin();
  step.restarted = true;
  return step;
}

void LaunchChain::extend() {
  for (std::uint32_t i = 0;
       i < settings_.chain_steps && launches_.size() < settings_.prefetch_degree; ++i) {
    PredictedLaunch next{};
    ++statistics_.operations;
    if (!predictor_.next(launches_.empty() ? nullptr : &launches_.back(), next)) {
      return;
    }
    launches_.push_back(next);
  }
}

void LaunchChain::forget() {
  launches_.clear();
  predictor_.forget();
}

std::size_t LaunchChain::trusted() const {
  // It may be longer than the degree, which a session may lower.
  return std::min<std::uint64_t>({launches_.size(), settings_.prefetch_degree,
                                  settings_.parameters.prediction.trust * right_in_a_row_});
}

}  // namespace deepum::core
