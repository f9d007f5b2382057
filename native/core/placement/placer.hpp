// Placement: a launch's blocks are made resident, at hand or ahead.
//
// The timing rule: an eviction waits for its victim's last use, a prefetch for the space that
// victims leave, each move of a block for that block's move before. Space is taken in launch order,
// so a launch's blocks are never evicted by a later one before it ran. The placer knows no chain,
// no plan, and no policy by name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "command_stream.hpp"
#include "commands.hpp"
#include "memory/address_space.hpp"
#include "placement/departures.hpp"
#include "placement/growth_forecast.hpp"
#include "placement/room_maker.hpp"
#include "placement/transfer_rule.hpp"
#include "prediction/execution_table.hpp"

namespace deepum::core {

// A launch that is placed.
struct Placement {
  LaunchIndex launch;
  Urgency urgency;
  bool sparse;                // it touches some rows of tables
  std::uint64_t doubt_after;  // launches after which its blocks are doubted
};

class Placer {
 public:
  Placer(const deepum_core_settings& settings, const Clock& now, deepum_core_statistics& statistics,
         CommandStream& commands, AddressSpace& memory, Devices& devices, Departures& departures,
         GrowthForecast& growth, RoomMaker& room);
  void add_rule(TransferRule& rule) { rules_.push_back(&rule); }

  // False: there is no room for a launch ahead; to be tried again. A launch at hand that does not
  // fit runs all the same.
  bool place(std::span<const Access> accesses, const Placement& placement);
  // A block is brought for that use because a plan of iterations of so many launches says so.
  // False: there is no room.
  bool place_scheduled(UmBlock& block, const SpanUse& use, std::uint64_t period);
  // The launch at hand starts once its blocks are there.
  void hold(std::span<const Access> accesses, std::uint32_t stream);
  // Launches are held no longer, where memory has not been short for two iterations of so many
  // launches: until then it may be short in each of them for a while.
  void end_holds(std::uint64_t iteration);
  // Launches after which blocks of a launch are doubted that comes again after so many: about an
  // iteration, so that whatever was lost is back after one. 0: it is not known to come again.
  std::uint64_t doubt_after(std::uint64_t period) const;

 private:
  // By command.
  bool decides() const { return settings_.policy == DEEPUM_POLICY_CORRELATION; }
  bool claim_resident(std::span<const Access> accesses,
                      const Placement& placement);  // true: some are missing
  void ask_again(DeviceMemory& device, UmBlock& block);
  static void note_use(DeviceMemory& device, UmBlock& block, const Placement& placement);
  bool drop_dead(DeviceMemory& device);
  bool bring(DeviceMemory& device, UmBlock& block, SpanUse use, const Placement& placement);
  static deepum_command_kind entry_of(const DeviceMemory& device, const UmBlock& block);
  void fetch(DeviceMemory& device, UmBlock& block, deepum_command_kind kind, Space space,
             const UmBlock* outgoing);

  const deepum_core_settings& settings_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  CommandStream& commands_;
  AddressSpace& memory_;
  Devices& devices_;
  Departures& departures_;
  GrowthForecast& growth_;
  RoomMaker& room_;
  std::vector<TransferRule*> rules_;
  bool takes_earliest_space_;
  // By device, stream and direction of kBringing: the latest command that a launch was held for.
  using Brought = std::array<MoveId, kBringing.size()>;
  std::array<std::array<Brought, DEEPUM_MAX_STREAMS>, DEEPUM_MAX_DEVICES> held_{};
  LaunchIndex short_at_ = 0;  // the latest launch with memory short, or that was held
  bool holds_ = false;        // some launch was held, and holds have not ended since
};

}  // namespace deepum::core
