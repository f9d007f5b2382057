// Clean pages: what the device has and the host has as well leaves the device without a copy.
// READ_MOSTLY makes a prefetch duplicate instead of move, and what was written is written back
// ahead of need. It stays right whatever is believed: a write collapses the duplicates, at the
// price of a fault. That faults are observed is a condition: they tell which launches write
// (prediction/use_trials.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "clock.hpp"
#include "command_stream.hpp"
#include "extras/pace_trial.hpp"
#include "memory/address_space.hpp"
#include "placement/device_memory.hpp"
#include "placement/host_copies.hpp"
#include "placement/transfer_rule.hpp"
#include "prediction/iteration_meter.hpp"
#include "prediction/use_tracker.hpp"
#include "prediction/use_trials.hpp"

namespace deepum::core {

class CopyBack final : public ContentListener,
                       public TransferRule,
                       public WriteListener,
                       public HostCopies {
 public:
  CopyBack(const deepum_core_settings& settings, const Clock& now,
           deepum_core_statistics& statistics, CommandStream& commands, AddressSpace& memory,
           Devices& devices, ExecutionTable& executions, const IterationMeter& iterations,
           const UseTrials& trials)
      : settings_(settings),
        parameters_(settings.parameters.copy_back),
        now_(now),
        statistics_(statistics),
        commands_(commands),
        memory_(memory),
        devices_(devices),
        executions_(executions),
        iterations_(iterations),
        trials_(trials),
        pace_(settings.parameters.trial) {}

  void content_died(UmBlock& block, bool died_now) override;
  void content_begins(UmBlock& block) override;
  void written_back_in_vain(UmBlock& block) override { judge(block, false); }
  void memory_gone(Allocation& allocation) override;
  void before_entry(UmBlock& block, const SpanUse& use) override;
  std::optional<Exit> exit(const UmBlock& block) const override;
  void after_exit(UmBlock& block, Exit exit) override;

  void leave_to_plan(bool planned) override { planned_ = planned; }
  bool pay() const override { return pace_.on(); }
  void write_back(UmBlock& block) override;

  // The launch at hand: before it is placed, what it writes is not on the host any longer; behind
  // it, what it may have written is queued for write-back, and what is due is written back.
  void launched();
  void note_reads(std::span<const Access> accesses);  // of a kernel
  void before(std::span<const Access> accesses);
  void after(std::span<const Access> accesses, std::uint32_t device, std::uint32_t stream);

  // The block is in one place from now on: on the device.
  void end_duplication(UmBlock& block);
  // What faults and answers say: a write was seen to fault; advice to duplicate, a write-back or
  // the end of a duplication was not carried out.
  void write_faulted(std::span<UmBlock> blocks);
  void duplication_failed(UmBlock& block) { forget_duplicate(block); }
  void write_back_failed(UmBlock& block) { lose_host_copy(block); }
  void collapse_failed(UmBlock& block) { mark_read_mostly(block); }
  void events_lost();

  bool may_ever_duplicate() const;
  PaceTrial& trial() { return pace_; }
  const PaceTrial& trial() const { return pace_; }

 private:
  struct Written {  // a block to be written back, and the launch that wrote it
    std::uint32_t slot, index;
    LaunchIndex launch;
  };
  struct WriteBack {                            // of a device
    std::deque<Written> at_once, once_settled;  // written longest ago first
    std::uint64_t evictions_lately = 0;         // blocks, in the iteration before this one,
    std::uint64_t evictions = 0;                // and since
    LaunchIndex counted_from = 0;               // that launch
    LaunchIndex evicted_at = 0;                 // launch at which a block last left by a copy
  };
  bool duplicates() const;
  bool may_duplicate(const UmBlock& block) const;
  static MoveId write_back_to_come(const UmBlock& block);
  void mark_read_mostly(UmBlock& block);
  void forget_duplicate(UmBlock& block);
  void lose_host_copy(UmBlock& block);
  bool pays_at_once(const BlockUser& writer);
  bool pays_once_settled(const UmBlock& block);
  void judge(UmBlock& block, bool left);
  void queue(std::span<const Access> accesses);
  void write_back(DeviceMemory& device, std::uint64_t stream);
  bool write_back_next(DeviceMemory& device, bool at_once, std::uint64_t stream);
  void copy_out(UmBlock& block, std::uint64_t streams);
  void count_evictions(WriteBack& queued) const;

  const deepum_core_settings& settings_;
  const deepum_copy_back_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  CommandStream& commands_;
  AddressSpace& memory_;
  Devices& devices_;
  ExecutionTable& executions_;
  const IterationMeter& iterations_;
  const UseTrials& trials_;
  PaceTrial pace_;            // whether clean pages pay
  bool planned_ = false;      // a plan decides on them
  bool reads_known_ = false;  // a kernel is known to only read something
  std::array<WriteBack, DEEPUM_MAX_DEVICES> queued_;
  std::uint64_t read_mostly_blocks_ = 0;
};

}  // namespace deepum::core
