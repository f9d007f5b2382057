// Which launches write the clean blocks that they use. Arguments do not tell that; but the write of
// a duplicate faults. So each use of a clean block whose effect is unknown is a trial: while the
// GPU's faults are observed, a launch that has run without one reads, and one among those that were
// in flight when a fault was seen writes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "clock.hpp"
#include "core.h"
#include "memory/address_space.hpp"
#include "prediction/execution_table.hpp"

namespace deepum::core {

class UseTrials {
 public:
  UseTrials(const deepum_core_settings& settings, const Clock& now,
            deepum_core_statistics& statistics, ExecutionTable& executions, AddressSpace& memory)
      : now_(now),
        statistics_(statistics),
        executions_(executions),
        memory_(memory),
        by_faults_(settings.writes == DEEPUM_WRITES_BY_FAULTS) {}

  // The launch at hand, on that stream, uses a clean block. `unknown`: it is not known whether it
  // writes it.
  void begin(const UmBlock& block, const BlockUser& user, std::uint32_t stream, bool unknown);
  // How far a stream was when faults were polled, before the faults of that poll are reported.
  void progress(const deepum_progress_event& event);
  // A write of these blocks was seen to fault.
  void blame(std::span<const UmBlock> blocks);
  // Faults may have been lost, so that no launch is known to read for want of one.
  void forget();

  // PROGRESS events come: faults are observed, or times of launches alone.
  bool observed() const { return observed_; }
  // No launch behind that event had begun, on any stream.
  EventSequence begun() const { return begun_; }
  // Faults of the stream's launches up to that event are reported.
  EventSequence reported(std::uint32_t stream) const { return streams_[stream].reported; }
  LaunchIndex latest_unknown() const {
    return latest_unknown_;
  }  // the latest launch with a trial of unknown effect; 0: none

 private:
  struct Trial {
    EventSequence sequence;
    BlockUser user;
    UmBlock::Key key;
  };
  struct Stream {  // at the latest poll of faults
    EventSequence completed = 0, begun = 0;
    EventSequence reported = 0;  // completed at the poll before: their faults have been reported
    std::deque<Trial> trials;    // that are not judged yet
  };
  const UmBlock* find(const Trial& trial) {
    return memory_.find(trial.key.slot, trial.key.generation, trial.key.index);
  }
  bool blame(std::span<const UmBlock> blocks, bool known_readers_too);

  const Clock& now_;
  deepum_core_statistics& statistics_;
  ExecutionTable& executions_;
  AddressSpace& memory_;
  const bool by_faults_;
  std::array<Stream, DEEPUM_MAX_STREAMS> streams_;
  EventSequence begun_ = 0;
  LaunchIndex latest_unknown_ = 0;
  bool observed_ = false;
};

}  // namespace deepum::core
