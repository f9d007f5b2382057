// Advice: what is better left on the host. An embedding table of which a kernel gathers or updates some thousand rows is read and written
// over the link in far less time than it takes to move it, and needs no room on the device: it prefers the host (PREFERRED_LOCATION) and
// is mapped for the device (ACCESSED_BY), so that nothing faults. What is on the device when it is advised stays there until its space
// is needed, and is as good as ever.
#include <algorithm>
#include <array>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
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
    std::uint32_t run = 0;
    std::uint32_t unmapped = 0;
    for (std::uint32_t i = 0; i <= span.count && sparse && may_advise && iteration_ > 0; ++i) {
      UmBlock* const block = i < span.count ? &allocation.blocks[span.first + i] : nullptr;
      if (block != nullptr && !block->mapped && !block->stays_away() && !block->refused && block->populated && !block->dead && position_ - block->filled > iteration_) {
        if (block->mostly) end_duplication(*block);
        ++unmapped;
        block->mapped = true;
      } else if (unmapped > 0) {
        map(allocation.blocks[span.first + i - unmapped], unmapped, true);
        unmapped = 0;
      }
    }
    for (std::uint32_t i = 0; i <= span.count; ++i) {  // one more, which ends the last run
      UmBlock* const block = i < span.count ? &allocation.blocks[span.first + i] : nullptr;
      bool changes = false;
      if (block != nullptr && sparse) {
        sparse_blocks_ += block->sparse_uses == 0 && !block->remote ? 1 : 0;
        block->sparse_uses = static_cast<std::uint8_t>(block->sparse_uses + (block->sparse_uses < kProvenSparse ? 1 : 0));
        changes = may_advise && block->sparse_uses == kProvenSparse && !block->stays_away() && !block->dense;
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

void Engine::map(const UmBlock& first, std::uint32_t count, bool mapped) {
  deepum_command made{};
  made.id = ++last_id_;
  made.cause = sequence_;
  made.slot = first.slot;
  made.generation = slots_[first.slot].generation;
  made.first_block = first.index;
  made.block_count = count;
  made.kind = DEEPUM_COMMAND_ADVISE;
  made.advice = mapped ? DEEPUM_MEM_ADVISE_SET_ACCESSED_BY : DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY;
  made.device = static_cast<std::uint16_t>(slots_[first.slot].device);
  made.location = static_cast<std::int32_t>(slots_[first.slot].device);
  commands_.push_back(made);
  given_[made.id % kRemembered] = made;
  ++statistics_.commands;
  last_of_direction_[DEEPUM_DIRECTION_IN] = 0;
}

void Engine::advise_remote(const UmBlock& first, std::uint32_t count, bool remote) {
  const Allocation& allocation = slots_[first.slot];
  const std::array<deepum_mem_advise, 2> advice =
      remote ? std::array{DEEPUM_MEM_ADVISE_SET_ACCESSED_BY, DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION}
             : std::array{DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY};
  for (const deepum_mem_advise each : advice) {
    deepum_command made{};
    made.id = ++last_id_;
    made.cause = sequence_;
    made.slot = first.slot;
    made.generation = allocation.generation;
    made.first_block = first.index;
    made.block_count = count;
    made.kind = DEEPUM_COMMAND_ADVISE;
    made.advice = static_cast<std::uint8_t>(each);
    made.device = static_cast<std::uint16_t>(allocation.device);
    made.location = each == DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION || each == DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION
                        ? -1
                        : static_cast<std::int32_t>(allocation.device);
    commands_.push_back(made);
    given_[made.id % kRemembered] = made;
    ++statistics_.commands;
  }
  last_of_direction_[DEEPUM_DIRECTION_IN] = 0;  // prefetches decided from now on come behind it
}

// Another tensor has the place; what is advised holds until that is used otherwise.
void Engine::forget_sparse_uses(UmBlock& block) {
  sparse_blocks_ -= block.sparse_uses > 0 && !block.remote ? 1 : 0;
  block.sparse_uses = 0;
  block.dense = false;
  if (block.mapped) {
    block.mapped = false;
    map(block, 1, false);
  }
}

// The driver forgets its advice with the memory, or never took it.
void Engine::forget_advice(UmBlock& block) {
  sparse_blocks_ -= block.sparse_uses > 0 || block.remote ? 1 : 0;
  statistics_.remote_bytes -= block.remote ? kBlockBytes : 0;
  block.sparse_uses = 0;
  block.remote = false;
  block.dense = true;
  block.mapped = false;
  block.refused = true;
}

}  // namespace deepum::core
