// A predictor in one class: it knows nothing. Launches are placed when they come.
#pragma once

#include "prediction/launch_predictor.hpp"

class NoPrediction final : public deepum::core::LaunchPredictor {
 public:
  bool next(const deepum::core::PredictedLaunch*, deepum::core::PredictedLaunch&) override {
    return false;
  }
};
