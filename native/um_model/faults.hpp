// What an access finds, and what the driver does about it: replayable faults serviced in batches,
// remote access, waiting for a transfer that is under way.
#pragma once

#include <utility>
#include <vector>

#include "counters.hpp"
#include "residency.hpp"

namespace deepum::um_model {

// Over the link instead of a migration: the CPU has it, and it was told to stay there
// (PREFERRED_LOCATION) or the device has a mapping of it in any case (ACCESSED_BY). READ_MOSTLY
// takes precedence over both (CUDA driver API, cuMemAdvise).
bool stays_remote(const Block& block, int device, Regions missing);

class FaultService {
 public:
  FaultService(BlockTable& blocks, Residency& residency, const Options& options)
      : blocks_(blocks), residency_(residency), options_(options) {}

  struct Outcome {
    // For a transfer that brings or takes the block, or any that may free a chunk.
    enum Wait { no, for_block, for_space } wait;
    double stall;  // ns
  };
  // An access of launch number `launch` (0: not a kernel's) to the sweep's current block at time
  // `now`. Missing blocks that follow without a gap are brought by the same fault batch. step: ns
  // that the access takes anyway. may_wait: else a transfer under way ends at once.
  Outcome access(int device, double now, const Sweep& sweep, std::uint64_t launch, double step,
                 bool may_wait);

  // Everything in the range, one after the other, as a copy engine does it; ns.
  double touch_all(int device, double now, Range range, bool write);

  // Counts an access once for each launch and region.
  void note(int device, Counters& counters, Block& block, Regions regions, Regions missing,
            std::uint64_t launch) {
    if (launch == 0) {
      return;
    }
    if (block.launch != launch) {
      block.launch = launch;
      block.touched = 0;
    }
    if ((block.prefetched & regions) != 0 && block.device == device) {
      counters.bytes_prefetched_used += bytes_of(block.prefetched & regions);
      block.prefetched &= ~regions;
    }
    const Regions fresh = regions & ~block.touched;
    if (fresh == 0) {
      return;
    }
    block.touched |= fresh;
    counters.bytes_accessed += bytes_of(fresh);
    counters.bytes_missing += bytes_of(fresh & missing);
  }

  const std::vector<Violation>& violations() const { return violations_; }
  std::vector<Fault> take_faults() { return std::exchange(faults_, {}); }
  std::uint64_t dropped() const { return dropped_; }

 private:
  Outcome service(int device, double now, const Sweep& from, std::uint64_t launch, bool may_wait);
  double remote(int device, double now, const Sweep& sweep, double step);
  // A prefetch will come to the block, and the kernel waits for that.
  bool awaits_prefetch(const Block& block, int device) const {
    return residency_.machine().queued_prefetch_faults == 0 && block.queued != 0 &&
           block.queued_to == device;
  }
  void check_lost(int device, const Block& block, const Sweep& sweep, std::uint64_t launch);
  void observe(int device, const Sweep& sweep, std::uint32_t faults, double start, double end);
  void tell(deepum_activity_kind kind, int device, double start, double end, std::uint64_t bytes,
            std::uint32_t count);

  BlockTable& blocks_;
  Residency& residency_;
  const Options& options_;
  std::uint64_t batch_ = 0;
  std::uint64_t doubted_launch_ = 0, violated_launch_ = 0;
  std::vector<Violation> violations_;
  std::vector<Fault> faults_;
  std::uint64_t dropped_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace deepum::um_model
