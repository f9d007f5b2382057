// Advice: what is better left on the host. An embedding table of which a kernel gathers or updates some thousand rows is read and written
// over the link in far less time than it takes to move it, and needs no room on the device: it prefers the host (PREFERRED_LOCATION) and
// is mapped for the device (ACCESSED_BY), so that nothing faults. What is on the device when it is advised stays there until its space
// is needed, and is as good as ever.
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint32_t kLeastTable = 4;   // UM blocks: what is smaller is as well brought
constexpr std::uint8_t kProvenSparse = 2;  // sparse uses in a row, with none besides: not a gather's result, which others read

}  // namespace

// The launch at hand uses these. Copies say nothing about how a table is used.
void Engine::note_sparse_uses(std::span<const BlockSpan> spans, std::uint8_t flags) {
  const bool gathers = (flags & DEEPUM_EXECUTE_SPARSE) != 0;
  if ((!gathers && sparse_blocks_ == 0) || (flags & DEEPUM_EXECUTE_COPY) != 0) {
    return;
  }
  for (const BlockSpan& span : spans) {
    Allocation& allocation = slots_[span.slot];
    const bool sparse = gathers && span.count >= kLeastTable && !allocation.of_program;
    const bool may_advise = (settings_.advice & DEEPUM_ADVISE_REMOTE) != 0 && settings_.policy == DEEPUM_POLICY_CORRELATION &&
                            devices_[allocation.device].under_pressure();
    statistics_.operations += span.count;
    if (sparse && may_advise) {
      map_tables(span);
    }
    std::uint32_t run = 0;
    for (std::uint32_t i = 0; i <= span.count; ++i) {  // one more, which ends the last run
      UmBlock* block = i < span.count ? &allocation.blocks[span.first + i] : nullptr;
      block = block != nullptr && block->away ? nullptr : block;
      bool changes = false;
      if (block != nullptr && sparse) {
        sparse_blocks_ += block->sparse_uses == 0 && !block->remote ? 1 : 0;
        block->sparse_uses = static_cast<std::uint8_t>(block->sparse_uses + (block->sparse_uses < kProvenSparse ? 1 : 0));
        changes = may_advise && block->sparse_uses == kProvenSparse && !block->stays_away() && !block->dense && !block->refused;
      } else if (block != nullptr) {
        changes = block->remote;
      }
      if (changes) {
        ++run;
      } else if (run > 0) {
        advise_remote(allocation.blocks[span.first + i - run], run, sparse);
        run = 0;
      }
      if (block != nullptr && changes) {
        block->remote = sparse;
        block->mapped = sparse && block->mapped;
        block->dense = !sparse;
        statistics_.remote_bytes += sparse ? kBlockBytes : -kBlockBytes;
        statistics_.peak_remote_bytes = std::max(statistics_.peak_remote_bytes, statistics_.remote_bytes);
      }
      if (block != nullptr && !sparse) {
        sparse_blocks_ -= block->sparse_uses > 0 || changes ? 1 : 0;
        block->sparse_uses = 0;
      }
    }
  }
}

void Engine::advise_remote(const UmBlock& first, std::uint32_t count, bool remote) {
  if (remote) {
    give_advice(first, count, DEEPUM_MEM_ADVISE_SET_ACCESSED_BY);
    give_advice(first, count, DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION);
  } else {
    give_advice(first, count, DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
    give_advice(first, count, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY);
  }
}

// A table that other launches use as well, an optimizer say, goes to the device for these, and stays where it is for gathers: what is on
// the host is mapped for the device. A gather's result, too, lies in large memory; but its content is new.
void Engine::map_tables(const BlockSpan& span) {
  UmBlock* const blocks = slots_[span.slot].blocks.data() + span.first;
  std::uint32_t run = 0;
  for (std::uint32_t i = 0; i <= span.count; ++i) {  // one more, which ends the last run
    if (i < span.count && may_map(blocks[i])) {
      if (blocks[i].mostly) {  // that would have precedence
        end_duplication(blocks[i]);
      }
      blocks[i].mapped = true;
      ++run;
    } else if (run > 0) {
      give_advice(blocks[i - run], run, DEEPUM_MEM_ADVISE_SET_ACCESSED_BY);
      run = 0;
    }
  }
}

bool Engine::may_map(const UmBlock& block) const {
  return !block.mapped && !block.refused && !block.stays_away() && block.populated && !block.dead && iteration_ > 0 &&
         position_ - block.filled > iteration_;
}

void Engine::give_advice(const UmBlock& first, std::uint32_t count, deepum_mem_advise advice) {
  const Allocation& allocation = slots_[first.slot];
  deepum_command made{};
  made.id = ++last_id_;
  made.cause = sequence_;
  made.slot = first.slot;
  made.generation = allocation.generation;
  made.first_block = first.index;
  made.block_count = count;
  made.kind = DEEPUM_COMMAND_ADVISE;
  made.advice = static_cast<std::uint8_t>(advice);
  made.device = static_cast<std::uint16_t>(allocation.device);
  const bool of_device = advice == DEEPUM_MEM_ADVISE_SET_ACCESSED_BY || advice == DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY;
  made.location = of_device ? static_cast<std::int32_t>(allocation.device) : -1;
  commands_.push_back(made);
  given_[made.id % kRemembered] = made;
  ++statistics_.commands;
  last_of_direction_[DEEPUM_DIRECTION_IN] = 0;  // prefetches decided from now on come behind it
  last_advice_ = 0;
}

// Another tensor has the place; what is advised holds until that is used otherwise.
void Engine::forget_sparse_uses(UmBlock& block) {
  block.away = false;
  sparse_blocks_ -= block.sparse_uses > 0 && !block.remote ? 1 : 0;
  block.sparse_uses = 0;
  block.dense = false;
  if (block.mapped && !block.remote) {
    block.mapped = false;
    give_advice(block, 1, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY);
  }
}

// The driver forgets its advice with the memory, or never took it.
void Engine::forget_advice(UmBlock& block) {
  sparse_blocks_ -= block.sparse_uses > 0 || block.remote ? 1 : 0;
  statistics_.remote_bytes -= block.remote ? kBlockBytes : 0;
  block.sparse_uses = 0;
  block.remote = false;
  block.away = false;
  block.mapped = false;
  block.refused = true;
}

}  // namespace deepum::core
