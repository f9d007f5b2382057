// Without pre-eviction (DeepUM, section 6: prefetching alone) no block is evicted by command: where
// memory is full, the driver evicts one block for each that is fetched, in the order of its own
// list, where a prefetch of what is there counts as a migration. That block is known, so the
// prefetch waits for its last use, as an eviction would; what is known of launches to come saves
// none.
#pragma once

#include "command_stream.hpp"
#include "placement/pre_eviction.hpp"

namespace deepum::core {

class DriverEviction final : public PreEviction {
 public:
  DriverEviction(const deepum_core_settings& settings, const Clock& now,
                 deepum_core_statistics& statistics, Departures& departures, GrowthForecast& growth,
                 CommandStream& commands)
      : PreEviction(settings, now, statistics, departures, growth), commands_(commands) {}

  bool make_room(DeviceMemory& device, const Request& request, const UmBlock*& outgoing) override;
  void evict_surplus(DeviceMemory&, bool) override {}
  std::uint64_t headroom(const DeviceMemory&) const override { return 0; }

 private:
  CommandStream& commands_;
};

}  // namespace deepum::core
