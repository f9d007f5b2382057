// What is moved ahead of need, and when. ChainPlanner is DeepUM's chaining, with trust, growth and
// the window; PlanFollower carries out a plan that was made beforehand.
#pragma once

#include <cstdint>

#include "placement/room_maker.hpp"
#include "prediction/launch.hpp"
#include "prediction/launch_chain.hpp"

namespace deepum::core {

class Planner : public Promises {
 public:
  virtual ~Planner() = default;
  // What became of the chain with the launch at hand, which is not placed yet.
  virtual void followed(const Launch& launch, const LaunchChain::Step& step) = 0;
  // The launch at hand is placed, and the chain extended.
  virtual void launched(const Launch& launch) = 0;
  // The program is about to wait: what the GPU does until the next launches come is the time to
  // move what they will need.
  virtual void about_to_wait() = 0;
  // Nothing is predicted any longer.
  virtual void forget() = 0;
};

}  // namespace deepum::core
