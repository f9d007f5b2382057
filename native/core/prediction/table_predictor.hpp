// Predicts by the execution correlation table (DeepUM, section 4): from execution to execution by
// the records of the three launches before.
#pragma once

#include "prediction/launch_predictor.hpp"

namespace deepum::core {

class TablePredictor final : public LaunchPredictor {
 public:
  explicit TablePredictor(const ExecutionTable& executions) : executions_(executions) {}

  void observe(const Launch& launch) override { context_.push(launch.id); }
  bool next(const PredictedLaunch* previous, PredictedLaunch& found) override;
  void begin() override { end_ = context_; }
  void forget() override { context_ = {}; }

 private:
  const ExecutionTable& executions_;
  Context context_;  // of the latest launches
  Context end_;      // of the chain's end
};

}  // namespace deepum::core
