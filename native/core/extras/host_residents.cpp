#include "extras/host_residents.hpp"

#include <algorithm>
#include <limits>

#include "extras/block_runs.hpp"

namespace deepum::core {

// Copies say nothing about how a table is used.
void HostResidents::observe(std::span<const Access> accesses, std::uint8_t flags) {
  const bool gathers = (flags & DEEPUM_EXECUTE_SPARSE) != 0;
  if ((!gathers && sparse_blocks_ == 0 && mapped_blocks_ == 0) ||
      (flags & DEEPUM_EXECUTE_COPY) != 0) {
    return;
  }
  for (const Access& access : accesses) {
    observe(access.span, gathers);
  }
}

bool HostResidents::may_advise() const {
  return (settings_.advice & DEEPUM_ADVISE_REMOTE) != 0 &&
         settings_.policy == DEEPUM_POLICY_CORRELATION;
}

void HostResidents::observe(const BlockSpan& span, bool gathers) {
  const Allocation& allocation = memory_.at(span.slot);
  const bool short_of_memory = devices_[allocation.device].residency.under_pressure();
  if (!gathers && sparse_blocks_ == 0 && short_of_memory) {
    return;
  }
  const std::span<UmBlock> blocks = memory_.blocks(span);
  const bool sparse = gathers && blocks.size() >= parameters_.least_table && !allocation.of_program;
  const bool advises = short_of_memory && may_advise();
  statistics_.operations += blocks.size();
  if (sparse && advises) {
    map_tables(blocks);
  } else if (!sparse && !short_of_memory && mapped_blocks_ != 0) {
    unmap_tables(blocks);
  }
  const auto changes_by_use = [&](UmBlock& block) {
    if (block.on_host.of_group) {
      return false;
    }
    const bool changed = changes(block, sparse, advises);
    apply(block, sparse, changed);
    return changed;
  };
  for_each_run(blocks, changes_by_use,
               [&](const UmBlock& first, std::uint32_t count) { advise(first, count, sparse); });
}

// Whether the block goes to the host by that use, or comes back.
bool HostResidents::changes(UmBlock& block, bool sparse, bool advises) {
  UmBlock::OnHost& on_host = block.on_host;
  if (!sparse) {
    return on_host.advised;
  }
  sparse_blocks_ += on_host.sparse_uses == 0 && !on_host.advised ? 1 : 0;
  const auto proven = static_cast<std::uint8_t>(
      std::min<std::uint32_t>(parameters_.proven_sparse, std::numeric_limits<std::uint8_t>::max()));
  on_host.sparse_uses += on_host.sparse_uses < proven ? 1 : 0;
  return advises && on_host.sparse_uses == proven && !on_host.stays() && !on_host.also_dense &&
         !on_host.refused && !block.order.pinned;
}

void HostResidents::apply(UmBlock& block, bool sparse, bool changed) {
  UmBlock::OnHost& on_host = block.on_host;
  if (changed) {
    on_host.advised = sparse;
    set_mapped(block, sparse && on_host.mapped);
    on_host.also_dense = !sparse;
    statistics_.remote_bytes += sparse ? kBlockBytes : -kBlockBytes;
    note_peak();
  }
  if (!sparse) {
    sparse_blocks_ -= on_host.sparse_uses > 0 || changed ? 1 : 0;
    on_host.sparse_uses = 0;
  }
}

void HostResidents::advise(const UmBlock& first, std::uint32_t count, bool on_host) {
  if (on_host) {
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_SET_ACCESSED_BY);
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION);
  } else {
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY);
  }
}

// A table that other launches use as well, an optimizer say, goes to the device for these, and
// stays where it is for gathers: what is on the host is mapped for the device. A gather's result,
// too, lies in large memory; but its content is new.
void HostResidents::map_tables(std::span<UmBlock> blocks) {
  const auto maps = [this](UmBlock& block) {
    if (!may_map(block)) {
      return false;
    }
    if (block.host_copy.read_mostly) {  // that would have precedence
      copy_back_.end_duplication(block);
    }
    set_mapped(block, true);
    return true;
  };
  for_each_run(blocks, maps, [this](const UmBlock& first, std::uint32_t count) {
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_SET_ACCESSED_BY);
  });
}

// With room for all, nothing else brings the table for a launch that needs all of it: while it is
// mapped, the driver does not.
void HostResidents::unmap_tables(std::span<UmBlock> blocks) {
  const auto unmaps = [this](UmBlock& block) {
    if (!block.on_host.mapped || block.on_host.advised) {
      return false;
    }
    set_mapped(block, false);
    return true;
  };
  for_each_run(blocks, unmaps, [this](const UmBlock& first, std::uint32_t count) {
    commands_.advise(first, count, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY);
  });
}

void HostResidents::set_mapped(UmBlock& block, bool mapped) {
  mapped_blocks_ += mapped ? 1 : 0;
  mapped_blocks_ -= block.on_host.mapped ? 1 : 0;
  block.on_host.mapped = mapped;
}

bool HostResidents::may_map(const UmBlock& block) const {
  return !block.on_host.mapped && !block.on_host.refused && !block.on_host.stays() &&
         !block.order.pinned && block.content.populated && !block.content.dead &&
         now_.iteration > 0 && now_.launch - block.content.filled > now_.iteration;
}

// A place that the program prefers on the host stays there: kernels read it over the link, by the
// program's own will.
void HostResidents::follow_program(std::span<UmBlock> blocks, bool on_host) {
  for (UmBlock& block : blocks) {
    block.on_host.by_program = on_host;
  }
}

// Another tensor has the place; what is advised holds until that is used otherwise.
void HostResidents::content_begins(UmBlock& block) {
  UmBlock::OnHost& on_host = block.on_host;
  on_host.of_group = false;
  sparse_blocks_ -= on_host.sparse_uses > 0 && !on_host.advised ? 1 : 0;
  on_host.sparse_uses = 0;
  on_host.also_dense = false;
  if (on_host.mapped && !on_host.advised) {
    set_mapped(block, false);
    commands_.advise(block, 1, DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY);
  }
}

void HostResidents::memory_gone(Allocation& allocation) {
  for (UmBlock& block : allocation.blocks) {
    forget_advice(block);
  }
}

// The driver forgets its advice with the memory, or never took it.
void HostResidents::forget_advice(UmBlock& block) {
  UmBlock::OnHost& on_host = block.on_host;
  sparse_blocks_ -= on_host.sparse_uses > 0 || on_host.advised ? 1 : 0;
  statistics_.remote_bytes -= on_host.advised ? kBlockBytes : 0;
  on_host.sparse_uses = 0;
  on_host.advised = false;
  on_host.of_group = false;
  set_mapped(block, false);
  on_host.refused = true;
}

bool HostResidents::may_stay_as_group(const UmBlock& block) const {
  return !block.on_host.stays() && !block.on_host.refused && !block.content.dead &&
         !block.on_host.mapped && block.on_host.sparse_uses == 0 && !block.order.pinned;
}

void HostResidents::set_of_group(UmBlock& block, bool on_host) {
  block.on_host.advised = block.on_host.of_group = on_host;
  sparse_blocks_ += on_host ? 1 : -1;
  statistics_.remote_bytes += on_host ? kBlockBytes : -kBlockBytes;
}

}  // namespace deepum::core
