// Predicts by the history: what followed the same launches before. At most up to the present, one
// iteration, always the latest, since the chain goes on as the history does.
#pragma once

#include "prediction/launch_predictor.hpp"

namespace deepum::core {

class HistoryPredictor final : public LaunchPredictor {
 public:
  HistoryPredictor(const LaunchHistory& history, const deepum_prediction_parameters& parameters)
      : history_(history), parameters_(parameters) {}

  bool next(const PredictedLaunch* previous, PredictedLaunch& found) override;
  std::size_t find(const Chain& chain, ExecutionId id, const Execution& execution) const override;
  bool confirm(const PredictedLaunch& passed, bool right) override;
  bool tolerate() override;
  std::uint64_t lasting_trust() const override;
  void abandoned() override;
  void begin() override { match_ = history_.recall(); }
  void forget() override { abandoned(); }
  bool knows_history() const override { return true; }

 private:
  bool agrees_better() const;

  const LaunchHistory& history_;
  const deepum_prediction_parameters& parameters_;
  Recollection match_;          // of the latest launch, which the chain follows
  std::uint32_t inserted_ = 0;  // launches in a row that were not in the chain
  // Of the latest 32 that were, a bit for each that was not quite as predicted.
  std::uint32_t astray_ = 0;
};

}  // namespace deepum::core
