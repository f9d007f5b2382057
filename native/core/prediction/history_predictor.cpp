#include "prediction/history_predictor.hpp"

#include <algorithm>
#include <bit>

namespace deepum::core {

bool HistoryPredictor::next(const PredictedLaunch* previous, PredictedLaunch& found) {
  const std::uint64_t before = previous == nullptr ? match_.place : previous->cookie;
  const std::uint64_t place = before + 1;
  if (before == kNowhere || !history_.holds(place)) {
    return false;
  }
  const PastLaunch& past = history_.at(place);
  found = {past.id, past.generation, past.kernel, place};
  return true;
}

// PyTorch's blocks change places now and then, while the sequence goes on as it was: the same
// kernel on other blocks counts as well.
std::size_t HistoryPredictor::find(const Chain& chain, ExecutionId id,
                                   const Execution& execution) const {
  const auto exact = [&](const PredictedLaunch& link) {
    return link.id == id && link.generation == execution.generation;
  };
  const auto alike = [&](const PredictedLaunch& link) { return link.kernel == execution.kernel; };
  if (exact(chain.front()) || alike(chain.front())) {
    return 0;
  }
  const auto from = chain.begin();
  const auto near = from + static_cast<std::ptrdiff_t>(
                               std::min<std::size_t>(chain.size(), parameters_.skipped_kernels));
  const auto far =
      from + static_cast<std::ptrdiff_t>(std::min<std::size_t>(chain.size(), parameters_.skipped));
  auto found = std::find_if(from, far, exact);
  if (found == far) {
    found = std::find_if(from, near, alike);
    found = found == near ? chain.end() : found;
  }
  return static_cast<std::size_t>(found - from);
}

// Whether another place in the history is the better match. The present one is left only when what
// is launched has lain elsewhere for a while: tensors change places now and then wherever one
// looks.
bool HistoryPredictor::confirm(const PredictedLaunch& passed, bool right) {
  astray_ = astray_ << 1 | (right ? 0 : 1);
  inserted_ = 0;
  match_.place = passed.cookie;
  const Recollection now = history_.recall();
  if (now.place == match_.place) {
    match_.agreement = std::max(match_.agreement, now.agreement);
    return true;
  }
  const bool mistaken =
      !right && (now.agreement > match_.agreement ||
                 (now.agreement > parameters_.known_agreement &&
                  std::popcount(astray_) >= static_cast<int>(parameters_.astray)));
  return !mistaken;
}

bool HistoryPredictor::tolerate() {
  return !agrees_better() && ++inserted_ <= parameters_.inserted;
}

// Where it agrees as well, the longer way back is better: a loop inside an iteration ends, and the
// iteration goes on.
bool HistoryPredictor::agrees_better() const {
  const Recollection now = history_.recall();
  return now.agreement > match_.agreement ||
         (now.agreement == match_.agreement && now.place < match_.place);
}

std::uint64_t HistoryPredictor::lasting_trust() const {
  return history_.recall().agreement >= parameters_.known_agreement ? 2 : 0;
}

void HistoryPredictor::abandoned() {
  match_ = {};
  inserted_ = 0;
  astray_ = 0;
}

}  // namespace deepum::core
