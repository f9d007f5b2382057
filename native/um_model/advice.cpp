// Advice, with the meaning that the CUDA driver API documents for cuMemAdvise. It holds for whole
// UM blocks: a range that covers part of a block advises all of it.
#include <algorithm>

#include "state.hpp"

namespace deepum::um_model {

void AdviceQueue::push(double time, std::span<const Range> ranges, Advice advice, int location) {
  pending_.push_back({++tokens_, {ranges.begin(), ranges.end()}, advice, location});
  timeline_.at(time, *this, tokens_);
}

void AdviceQueue::wake(double, std::uint64_t token) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Pending& p) { return p.token == token; });
  const Pending due = std::move(*found);
  pending_.erase(found);
  for (const Range& range : due.ranges) {
    each_block(blocks_, range, true, [&](Block& block, Regions, std::uint64_t) {
      apply(block, due.advice, due.location);
    });
  }
}

void AdviceQueue::apply(Block& block, Advice advice, int location) {
  const std::uint32_t bit = location >= 0 && location < 32 ? 1u << location : 0;
  switch (advice) {
    case Advice::read_mostly:
      block.read_mostly = true;
      return;
    case Advice::unset_read_mostly: {
      block.read_mostly = false;
      residency_.settle(block);
      // Duplicates collapse to the preferred location's copy if there is one, else the first
      // processor's, which is the CPU (uvm_policy.c: va_block_unset_read_duplication_locked).
      // Nothing is transferred.
      const Regions both = block.on_device & block.on_cpu;
      if (both == 0) {
        return;
      }
      if (block.preferred >= 0 && block.preferred == block.device) {
        residency_.off_host(block, both);
      } else {
        residency_.drop(block, both);
      }
      return;
    }
    case Advice::preferred_location:
      block.preferred = static_cast<std::int16_t>(location);
      return;
    case Advice::unset_preferred_location:
      block.preferred = kNoLocation;
      block.remote_mapped = false;
      return;
    case Advice::accessed_by:
      block.accessed_by |= bit;
      return;
    case Advice::unset_accessed_by:
      block.accessed_by &= ~bit;
      return;
  }
}

}  // namespace deepum::um_model
