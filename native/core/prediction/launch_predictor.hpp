// What is launched next. TablePredictor is DeepUM's; HistoryPredictor is the default.
//
// A new predictor is one class: `next` suffices. LaunchChain holds what it predicted and compares
// it with what comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "core.h"
#include "prediction/history.hpp"
#include "prediction/launch.hpp"

namespace deepum::core {

class LaunchPredictor {
 public:
  using Chain = std::deque<PredictedLaunch>;
  virtual ~LaunchPredictor() = default;

  // A launch came. The history and the tables have it already.
  virtual void observe(const Launch&) {}
  // The launch after `previous`; nullptr: after the launch that came last. False: nothing is known.
  virtual bool next(const PredictedLaunch* previous, PredictedLaunch& found) = 0;
  // Which launch of the chain, which is not empty, that execution is; the chain's size: none.
  virtual std::size_t find(const Chain& chain, ExecutionId id, const Execution& execution) const {
    return chain.front().id == id && chain.front().generation == execution.generation
               ? 0
               : chain.size();
  }
  // The launch that came was found in the chain, as `passed`; `right`: as the first one, exactly.
  // False: the chain is to be made anew from another place.
  virtual bool confirm(const PredictedLaunch& /*passed*/, bool /*right*/) { return true; }
  // The launch that came is not in the chain. True: the chain stands, the launch was inserted.
  virtual bool tolerate() { return false; }
  // The part of the trust, as a divisor, that remains when the chain begins anew after such a
  // launch; 0: none.
  virtual std::uint64_t lasting_trust() const { return 0; }
  // The chain was given up.
  virtual void abandoned() {}
  // The chain, which is empty, begins after the launch that came last.
  virtual void begin() {}
  // Nothing is known of the launches before.
  virtual void forget() {}

  // Whether `cookie` is a place in the history, so that growth of content is foreseen.
  virtual bool knows_history() const { return false; }
};

using LaunchPredictorFactory = std::function<std::unique_ptr<LaunchPredictor>(
    const deepum_core_settings&, const ExecutionTable&, const LaunchHistory&)>;
// The predictor that settings name.
std::unique_ptr<LaunchPredictor> make_launch_predictor(const deepum_core_settings& settings,
                                                       const ExecutionTable& executions,
                                                       const LaunchHistory& history);

}  // namespace deepum::core
