// Room is made by evictions, ahead of need: dead blocks leave first, then those that the device's
// EvictionPolicy chooses.
#pragma once

#include "placement/departures.hpp"
#include "placement/growth_forecast.hpp"
#include "placement/room_maker.hpp"

namespace deepum::core {

class PreEviction : public RoomMaker {
 public:
  PreEviction(const deepum_core_settings& settings, const Clock& now,
              deepum_core_statistics& statistics, Departures& departures, GrowthForecast& growth);
  void set_promises(const Promises& promises) { promises_ = &promises; }

  bool make_room(DeviceMemory& device, const Request& request, const UmBlock*& outgoing) override;
  void evict_surplus(DeviceMemory& device, bool all) override;
  std::uint64_t headroom(const DeviceMemory& device) const override;

 protected:
  // Whether the launch may have room at all. What is only predicted takes what is not needed on the
  // way there. Others leave for it only if the driver does not let the host run ahead: else the
  // launches themselves come early enough, and what they need is certain.
  bool may_take_room(const DeviceMemory& device, Urgency urgency) const;

  deepum_core_statistics& statistics_;
  Departures& departures_;

 private:
  bool make_spare_room(DeviceMemory& device, LaunchIndex launch);
  void make_batch(DeviceMemory& device, const Request& request);
  UmBlock* next_victim(DeviceMemory& device, LaunchIndex launch, bool last_resort,
                       bool dead_may_leave);
  void discard_dead(DeviceMemory& device, LaunchIndex launch);
  bool keeps_dead(const DeviceMemory& device);

  const deepum_core_settings& settings_;
  const deepum_eviction_parameters& parameters_;
  const Clock& now_;
  GrowthForecast& growth_;
  const Promises* promises_ = nullptr;
  bool by_next_use_;
  bool knows_growth_;
  bool short_queue_;
};

}  // namespace deepum::core
