// Dead blocks: UM blocks all of which is inactive PyTorch memory. Their content is not read again
// before it is written, so that it is discarded where that of others would be copied (DeepUM,
// section 5.2). What is discarded is proposed here; the mover, which knows what is active by then,
// commits.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "core.h"
#include "memory/address_space.hpp"
#include "placement/departures.hpp"
#include "placement/device_memory.hpp"
#include "placement/transfer_rule.hpp"

namespace deepum::core {

class Invalidation final : public ContentListener, public TransferRule {
 public:
  Invalidation(const deepum_core_settings& settings, const Clock& now,
               const deepum_core_statistics& statistics, Devices& devices, Departures& departures)
      : settings_(settings),
        now_(now),
        statistics_(statistics),
        devices_(devices),
        departures_(departures) {}

  void content_died(UmBlock& block, bool died_now) override;
  void content_begins(UmBlock& block) override;
  void memory_gone(Allocation&) override {}
  std::optional<Exit> exit(const UmBlock& block) const override;
  void after_exit(UmBlock& block, Exit exit) override;

  // A graph was launched: its launches use memory that looks inactive.
  void graph_launched() { graphs_ = true; }
  // The program's side never lets blocks leave by a discard.
  void refused();
  // That discard, of a block that is still dead, was not carried out: the content has to be copied.
  // Another would most likely fail as well.
  void failed(MoveId discard);

 private:
  bool drops_dead() const { return settings_.invalidation != 0 && !refused_; }
  bool discardable(const UmBlock& block) const;
  void note_discard(const UmBlock& block);

  const deepum_core_settings& settings_;
  const Clock& now_;
  const deepum_core_statistics& statistics_;
  Devices& devices_;
  Departures& departures_;
  bool graphs_ = false;
  bool refused_ = false;
  LaunchIndex next_attempt_ = 0;  // launch before which no discard is tried again,
  std::uint64_t pause_ = 0;       // and the launches from the latest failure to that
  MoveId first_ = 0;              // the first discard after the pause; 0: none was decided yet
};

}  // namespace deepum::core
