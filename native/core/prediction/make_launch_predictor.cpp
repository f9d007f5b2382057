#include "prediction/history_predictor.hpp"
#include "prediction/table_predictor.hpp"

namespace deepum::core {

std::unique_ptr<LaunchPredictor> make_launch_predictor(const deepum_core_settings& settings,
                                                       const ExecutionTable& executions,
                                                       const LaunchHistory& history) {
  if (settings.prediction == DEEPUM_PREDICT_TABLES) {
    return std::make_unique<TablePredictor>(executions);
  }
  return std::make_unique<HistoryPredictor>(history, settings.parameters.prediction);
}

}  // namespace deepum::core
