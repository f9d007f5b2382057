// Launches of the chain are placed: when the program waits all that are trusted, soon after it a
// few, and while the host runs ahead what there is room for.
//
// While the host runs ahead of the GPU there is no need to guess: what is launched is certain, and
// a guess's moves would go before those of launches that were not predicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "memory/address_space.hpp"
#include "placement/departures.hpp"
#include "placement/growth_forecast.hpp"
#include "placement/placer.hpp"
#include "placement/planner.hpp"

namespace deepum::core {

class ChainPlanner final : public Planner {
 public:
  ChainPlanner(const deepum_core_settings& settings, const Clock& now,
               deepum_core_statistics& statistics, const LaunchChain& chain,
               const LaunchPredictor& predictor, ExecutionTable& executions, AddressSpace& memory,
               Devices& devices, Departures& departures, GrowthForecast& growth, RoomMaker& room,
               Placer& placer);

  void followed(const Launch& launch, const LaunchChain::Step& step) override;
  void launched(const Launch& launch) override;
  void about_to_wait() override;
  void forget() override;
  LaunchIndex promised_until() const override { return now_.launch + promised_; }

 private:
  // What settings make of the planner.
  struct Options {
    // Launches that are not placed yet are expected to use their blocks.
    bool expects_while_host_runs;
    bool reserves_growth;  // room is made for new content ahead of need
    bool fetches_into_spare_room;
    bool places_at_every_launch;  // the driver does not let the host run ahead
    bool places_only_known;       // the chain ends at an execution that is new
    bool evicts_ahead;            // the driver does not evict for what is fetched
  };
  static Options options(const deepum_core_settings& settings, const LaunchPredictor& predictor);

  void place_some(std::size_t most);
  bool place_next(Urgency urgency);
  void place_into_spare_room(const DeviceMemory& device);
  void expect_ahead(std::size_t most);
  void reserve_ahead(std::size_t most);
  void make_reserved_room(DeviceMemory& device);
  void evict_ahead(DeviceMemory& device);
  const Execution* known(const PredictedLaunch& launch) const;

  const deepum_core_settings& settings_;
  const deepum_planner_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  const LaunchChain& chain_;
  ExecutionTable& executions_;
  AddressSpace& memory_;
  Devices& devices_;
  Departures& departures_;
  GrowthForecast& growth_;
  RoomMaker& room_;
  Placer& placer_;
  Options options_;
  // Cursors into the chain: the launches before it
  std::size_t expected_ = 0;  // are expected to use their blocks, where resident,
  std::size_t placed_ = 0;    // were placed,
  std::size_t promised_ = 0;  // and keep their blocks: those behind were placed into spare room;
  std::size_t reserved_ = 0;  // have room for their new content.
  std::uint64_t launches_since_wait_ = 0;
  std::vector<Access> located_;  // of the launch that is placed
  std::vector<UmBlock*> leaving_;
};

}  // namespace deepum::core
