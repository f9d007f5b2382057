// What the launches of an iteration use, launch by launch, for a plan that is made elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "core.h"
#include "memory/address_space.hpp"
#include "memory/block_use.hpp"

namespace deepum::core {

class UseRecorder final : public ContentListener {
 public:
  UseRecorder(const Clock& now, AddressSpace& memory) : now_(now), memory_(memory) {}

  // The next so many launches; what was recorded before goes. 0: none any longer.
  void begin(std::uint32_t launches);
  // Launches are asked for, whether they have come or are still to come.
  bool wanted() const { return wanted_ != 0; }
  // Launches are still to come.
  bool under_way() const { return launches_.size() < wanted_; }
  // All that were asked for have come, and none of them was odd.
  bool complete() const { return wanted_ != 0 && !under_way(); }

  // A launch uses those blocks, but for what it uses where it is, on the host. `runs`: the same by
  // name. Expected: the iteration that is repeated has it here; a recording with another one begins
  // anew.
  void launched(const deepum_execute_event& event, std::span<const Access> accesses,
                std::span<const BlockRun> runs, bool expected);

  std::span<const deepum_recorded_launch> launches() const { return launches_; }
  std::span<const deepum_recorded_use> uses() const { return uses_; }

  void content_died(UmBlock& block, bool died_now) override;
  void content_begins(UmBlock&) override {}
  void memory_gone(Allocation& allocation) override;

 private:
  void end(const UmBlock& block);

  const Clock& now_;
  AddressSpace& memory_;
  std::size_t wanted_ = 0;
  std::vector<deepum_recorded_launch> launches_;
  std::vector<deepum_recorded_use> uses_;  // in the order of launches
};

}  // namespace deepum::core
