// The launches expected to follow the latest one, and how far they may be trusted. It knows neither
// memory nor commands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prediction/launch_predictor.hpp"

namespace deepum::core {

class LaunchChain {
 public:
  LaunchChain(LaunchPredictor& predictor, const deepum_core_settings& settings,
              deepum_core_statistics& statistics)
      : predictor_(predictor), settings_(settings), statistics_(statistics) {}

  // What became of the chain with a launch.
  struct Step {
    // Launches that left its front: the one that came, and those before it that did not.
    std::size_t passed = 0;
    bool restarted = false;  // it was given up
  };
  Step follow(const Launch& launch, const Execution& execution);
  void extend();
  // It is given up, and nothing is known of the launches before.
  void forget();

  bool empty() const { return launches_.empty(); }
  std::size_t size() const { return launches_.size(); }
  const PredictedLaunch& operator[](std::size_t ahead) const { return launches_[ahead]; }
  auto begin() const { return launches_.begin(); }
  auto end() const { return launches_.end(); }
  // Which of its launches that execution is; its size: none, or it is empty.
  std::size_t find(ExecutionId id, const Execution& execution) const {
    return empty() ? 0 : predictor_.find(launches_, id, execution);
  }
  // Trust grows with what came true: a program whose addresses change from step to step is not made
  // to fetch its old ones.
  std::size_t trusted() const;
  // So many predictions in a row were right that the program does what a profile's did.
  bool recognised() const { return recognised_; }

 private:
  LaunchPredictor& predictor_;
  const deepum_core_settings& settings_;
  deepum_core_statistics& statistics_;
  LaunchPredictor::Chain launches_;
  std::uint64_t right_in_a_row_ = 0;  // predictions
  bool recognised_ = false;
};

}  // namespace deepum::core
