// A plan that was made beforehand is followed, launch by launch, as long as the program does what
// it is of; where it does not, another planner goes on, until the program is where the plan knows
// it again. At one odd launch nothing is moved ahead; what the plan has for launches that were left
// out is done at the next.
//
// A plan that says what is copied ahead is followed only while such copies pay: a trial of doing
// without them is one of doing without the plan.
//
// What a plan says costs time only if it is wrong: a launch brings what it needs and the plan did
// not, and what the plan evicts is copied as ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "memory/address_space.hpp"
#include "placement/departures.hpp"
#include "placement/host_copies.hpp"
#include "placement/placer.hpp"
#include "placement/plan.hpp"
#include "placement/plan_position.hpp"
#include "placement/planner.hpp"

namespace deepum::core {

class PlanFollower final : public Planner {
 public:
  PlanFollower(const Clock& now, deepum_core_statistics& statistics, AddressSpace& memory,
               Devices& devices, Departures& departures, Placer& placer, HostCopies& copies,
               Planner& fallback)
      : now_(now),
        statistics_(statistics),
        memory_(memory),
        devices_(devices),
        departures_(departures),
        placer_(placer),
        copies_(copies),
        fallback_(fallback) {}

  // From the next launch on that shows where in it the program is. An empty plan: no longer.
  void follow(Plan plan);

  void followed(const Launch& launch, const LaunchChain::Step& step) override;
  void launched(const Launch& launch) override;
  void about_to_wait() override;
  void forget() override;
  LaunchIndex promised_until() const override;

 private:
  bool on_plan() const { return position_.current().has_value(); }
  void lose_place();
  bool waits_for_copies() const { return plan_copies_ && !copies_.pay(); }
  void carry_out(std::uint32_t launch, std::uint8_t until_point);
  void carry_out_left_out();
  void evict(std::span<UmBlock> blocks);
  void copy_out(std::span<UmBlock> blocks);
  bool prefetch(const deepum_planned_move& move);  // true: nothing of it is left to do
  void prefetch_waiting();

  const Clock& now_;
  deepum_core_statistics& statistics_;
  AddressSpace& memory_;
  Devices& devices_;
  Departures& departures_;
  Placer& placer_;
  HostCopies& copies_;
  Planner& fallback_;
  Plan plan_;
  bool plan_copies_ = false;
  std::vector<std::size_t> first_move_;  // by launch of the plan, and one more
  PlanPosition position_;
  std::size_t next_ = 0;                      // move of the launch at hand
  std::vector<deepum_planned_move> waiting_;  // prefetches for which there was no room yet
};

}  // namespace deepum::core
