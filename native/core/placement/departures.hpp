// Moves out: blocks leave a device by the timing rule. An eviction waits for its victim's last use,
// a discard for all that was launched, and both for the block's moves before.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "command_stream.hpp"
#include "placement/device_memory.hpp"
#include "placement/transfer_rule.hpp"

namespace deepum::core {

class Departures {
 public:
  Departures(const deepum_core_settings& settings, const Clock& now, CommandStream& commands,
             Devices& devices)
      : settings_(settings), now_(now), commands_(commands), devices_(devices) {}
  void add_rule(TransferRule& rule) { rules_.push_back(&rule); }

  // The block leaves for that launch.
  void evict(UmBlock& block, LaunchIndex for_launch);
  // The same for several of a device at once: its space is free from `collect` on, the commands are
  // given by `flush`.
  void collect(UmBlock& block) { collect(block, exit_of(block)); }
  void collect(UmBlock& block, Exit exit);
  void flush(LaunchIndex for_launch);
  bool any_copied() const;  // of those that were collected: its content is moved

  // The content of a dead block is discarded, wherever it is.
  void discard(UmBlock& block);
  // A launch used that stream.
  void note_stream(std::uint32_t stream) { used_streams_ |= 1ull << stream; }
  // Whether evictions from the device wait for launches of that stream alone, as far as is known.
  bool wait_for_stream_alone(std::uint32_t device, std::uint32_t stream) const;
  // The same for an eviction by the driver.
  void note_streams(const UmBlock& victim);

 private:
  struct Leaving {
    UmBlock* block;
    Exit exit;
  };
  struct Streams {
    std::uint64_t latest = 0;  // streams that the latest eviction waits for, a bit each
    LaunchIndex mixed_at = 0;  // launch at which one last waited for another stream, or several
  };
  Exit exit_of(const UmBlock& block) const;
  void leave(UmBlock& block, Exit exit, LaunchIndex for_launch);

  const deepum_core_settings& settings_;
  const Clock& now_;
  CommandStream& commands_;
  Devices& devices_;
  std::vector<TransferRule*> rules_;  // the first that says how a block leaves decides
  std::vector<Leaving> leaving_;
  std::uint64_t used_streams_ = 0;  // by launches so far, a bit each
  std::array<Streams, DEEPUM_MAX_DEVICES> streams_;
};

}  // namespace deepum::core
