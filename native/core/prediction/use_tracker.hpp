// What launches do with what they touch: how many launches later it is touched again, and whether
// they write it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clock.hpp"
#include "core.h"
#include "memory/address_space.hpp"
#include "prediction/launch.hpp"
#include "prediction/launch_chain.hpp"
#include "prediction/use_trials.hpp"

namespace deepum::core {

// Hears of blocks that were written back ahead of need and are written again before they left,
// before the launch that does so counts as their writer.
class WriteListener {
 public:
  virtual void written_back_in_vain(UmBlock& block) = 0;

 protected:
  ~WriteListener() = default;
};

class UseTracker final : public ContentListener {
 public:
  UseTracker(const deepum_core_settings& settings, const Clock& now,
             deepum_core_statistics& statistics, ExecutionTable& executions, AddressSpace& memory,
             WriteListener& listener)
      : now_(now),
        statistics_(statistics),
        executions_(executions),
        memory_(memory),
        reads_are_declared_(settings.writes == DEEPUM_WRITES_BY_OPERATORS),
        listener_(listener) {}

  // Of the launch at hand: the uses of its accesses are completed by what was learned.
  void learn(std::span<Access> accesses, Execution& execution, const LaunchChain& chain);
  // A trial of each of its clean blocks, which are in place: whether it writes them
  // (use_trials.hpp).
  void begin_trials(std::span<const Access> accesses, std::uint32_t stream,
                    UseTrials& trials) const;
  // Whether what leaves the device now tells what will; not so while clean copies are left out by
  // way of trial.
  void set_representative(bool representative) { representative_ = representative; }
  // Who used which block is forgotten, with the tables.
  void forget();

  void content_died(UmBlock& block, bool died_now) override;
  void content_begins(UmBlock&) override {}
  void memory_gone(Allocation&) override {}

 private:
  void inherit(Execution& execution, const LaunchChain& chain);
  void learn_next(const UmBlock& block, SpanUse use);
  void note_use(UmBlock& block, const RunUse* run, BlockUser user, SpanUse use);

  const Clock& now_;
  deepum_core_statistics& statistics_;
  ExecutionTable& executions_;
  AddressSpace& memory_;
  const bool reads_are_declared_;  // so that what was never declared may be written
  WriteListener& listener_;
  std::vector<std::uint32_t> places_;  // of the accesses at hand in the execution's block table
  bool representative_ = true;
};

}  // namespace deepum::core
