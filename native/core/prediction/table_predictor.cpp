#include "prediction/table_predictor.hpp"

namespace deepum::core {

bool TablePredictor::next(const PredictedLaunch* previous, PredictedLaunch& found) {
  end_ = previous == nullptr ? context_ : end_;
  const ExecutionId next = executions_.predict(end_);
  if (next == kNoExecution) {
    return false;
  }
  found = {next, executions_.at(next).generation, executions_.at(next).kernel};
  end_.push(next);
  return true;
}

}  // namespace deepum::core
