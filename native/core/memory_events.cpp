// What is told of memory, into the belief: devices, allocations, PyTorch's blocks, the program's own moves and advice, faults, and what
// became of commands.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "range_parts.hpp"

namespace deepum::core {
namespace {

constexpr std::uint32_t kMostSlots = 1u << DEEPUM_RANGE_SLOT_BITS;
constexpr std::uint64_t kMostBlocks = 1u << DEEPUM_RANGE_FIRST_BITS;
// Bounds on what hostile events make us keep.
constexpr std::uint64_t kMostBelievedBlocks = 1u << 22;  // 8 TiB over all allocations
constexpr std::uint64_t kMostTorchBlocks = 1u << 20;

constexpr std::uint32_t kShakenBlocks = 16;  // neighbours on each side of a fault

}  // namespace

void Engine::on_usage(const deepum_usage_event& event) {
  const std::uint64_t over = event.used_bytes - std::min(event.used_bytes, event.budget_bytes);
  statistics_.budget_overshoot_bytes = std::max(statistics_.budget_overshoot_bytes, over);
}

// Spans may overlap: arguments may point into the same block. That is looked at only where their sum is too much.
bool Engine::exceeds_capacity(std::span<const BlockSpan> spans) const {
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES> blocks{};
  bool suspect = false;
  for (const BlockSpan& span : spans) {
    const std::uint32_t ordinal = slots_[span.slot].device;
    blocks[ordinal] += span.count;
    suspect = suspect || (devices_[ordinal].known && blocks[ordinal] > devices_[ordinal].capacity_blocks);
  }
  if (!suspect) {
    return false;
  }
  std::vector<BlockSpan> sorted(spans.begin(), spans.end());
  std::ranges::sort(sorted, {}, [](const BlockSpan& span) { return std::pair(span.slot, span.first); });
  blocks = {};
  std::uint64_t end = 0;  // of what was counted of the slot
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const BlockSpan& span = sorted[i];
    end = i > 0 && sorted[i - 1].slot == span.slot ? end : 0;
    const std::uint64_t from = std::max<std::uint64_t>(span.first, end), to = std::uint64_t{span.first} + span.count;
    if (to > from) {
      const std::uint32_t ordinal = slots_[span.slot].device;
      blocks[ordinal] += to - from;
      end = to;
      if (devices_[ordinal].known && blocks[ordinal] > devices_[ordinal].capacity_blocks) {
        return true;
      }
    }
  }
  return false;
}

bool Engine::on_allocate(const deepum_allocate_event& event) {
  const std::uint64_t blocks = (event.first_offset % kBlockBytes + event.bytes + kBlockBytes - 1) / kBlockBytes;
  if (event.slot >= kMostSlots || event.bytes == 0 || event.bytes > kMostBlocks * kBlockBytes || blocks > kMostBlocks) {
    return false;
  }
  if (Allocation* stale = live(event.slot); stale != nullptr) {
    forget_allocation(*stale);
  }
  std::uint64_t believed = 0;
  for (const DeviceMemory& device : devices_) {
    believed += device.allocated_blocks;
  }
  if (believed + blocks > kMostBelievedBlocks || (event.slot >= slots_.size() && event.slot > slots_.size() + 4096)) {
    return false;
  }
  bound_names();
  const std::uint32_t name = names_.intern(event.name);
  std::vector<UmBlock> state(blocks);  // whatever takes memory comes first
  while (slots_.size() <= event.slot) {
    slots_.emplace_back();
  }
  Allocation& allocation = slots_[event.slot];
  allocation = {};
  allocation.live = true;
  allocation.of_program = (event.header.flags & DEEPUM_ALLOCATION_OF_PROGRAM) != 0;
  allocation.generation = event.generation;
  allocation.device = event.header.device;
  devices_in_use_ = std::max(devices_in_use_, event.header.device + 1u);
  allocation.bytes = event.bytes;
  allocation.first_offset = event.first_offset % kBlockBytes;
  allocation.name = name;
  allocation.born = position_;
  allocation.blocks = std::move(state);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    allocation.blocks[i].slot = event.slot;
    allocation.blocks[i].index = static_cast<std::uint32_t>(i);
  }
  names_.bind(allocation.name, event.slot);
  DeviceMemory& device = devices_[allocation.device];
  device.allocated_blocks += blocks;
  device.most_allocated_blocks = std::max(device.most_allocated_blocks, device.allocated_blocks);
  allocated_bytes_ += event.bytes;
  statistics_.peak_allocated_bytes = std::max(statistics_.peak_allocated_bytes, allocated_bytes_);
  return true;
}

void Engine::forget_allocation(Allocation& allocation) {
  DeviceMemory& device = devices_[allocation.device];
  if (std::ranges::any_of(allocation.blocks, &UmBlock::to_copy)) {
    for (std::deque<WrittenBlock>* const queue : {&device.to_copy, &device.to_settle}) {
      std::erase_if(*queue, [&](const WrittenBlock& written) { return written.slot == allocation.blocks.front().slot; });
    }
  }
  for (UmBlock& block : allocation.blocks) {
    device.grown -= block.fresh || block.dead ? 0 : 1;
    device.died_away += block.fresh || block.dead || block.resident ? 0 : 1;
    if (block.resident) {  // its space is free with the allocation
      device.drop(block);
    }
    forget_advice(block);
    mostly_blocks_ -= block.mostly ? 1 : 0;
  }
  device.allocated_blocks -= allocation.blocks.size();
  allocated_bytes_ -= allocation.bytes;
  device.reported_bytes -= allocation.active_bytes;
  for (const auto& [offset, block] : allocation.active) {
    forget_torch_block(allocation, block);
  }
  names_.bind(allocation.name, -1);
  allocation = {};
}

void Engine::forget_torch_block(const Allocation& allocation, const TorchBlock& block) {
  --torch_block_count_;
  torch_blocks_.give_back(allocation.device, block.bytes, block.ordinal);
  names_.bind(block.name, -1);
}

bool Engine::on_free(std::uint32_t slot, std::uint32_t generation) {
  Allocation* allocation = live(slot);
  if (allocation == nullptr || allocation->generation != generation) {
    return false;
  }
  forget_allocation(*allocation);
  return true;
}

// PyTorch's blocks: what is not handed out is dead. The allocator's own total of the device in each report checks ours.
bool Engine::on_block(const deepum_block_event& event, bool active) {
  Allocation* allocation = live(event.slot);
  if (allocation == nullptr || allocation->generation != event.generation || event.bytes == 0 || event.offset > allocation->bytes ||
      event.bytes > allocation->bytes - event.offset) {
    return false;
  }
  if (active && torch_block_count_ >= kMostTorchBlocks) {
    return false;
  }
  bound_names();
  allocation->reported = true;
  DeviceMemory& device = devices_[allocation->device];
  const auto found = allocation->active.find(event.offset);
  if (active) {
    if (found != allocation->active.end()) {
      allocation->active_bytes -= found->second.bytes;
      device.reported_bytes -= found->second.bytes;
      forget_torch_block(*allocation, found->second);
    }
    ++torch_block_count_;
    const std::uint32_t ordinal = torch_blocks_.take(allocation->device, event.bytes);
    const std::uint32_t name = names_.intern(TorchBlockNames::name(allocation->device, event.bytes, ordinal));
    names_.bind(name, event.slot, static_cast<std::uint32_t>((allocation->first_offset + event.offset) / kBlockBytes));
    allocation->active[event.offset] = {event.bytes, ordinal, name, position_};
    allocation->active_bytes += event.bytes;
    mark_alive(*allocation, event.offset, event.bytes);
    device.reported_bytes += event.bytes;
  } else if (found != allocation->active.end()) {
    allocation->active_bytes -= found->second.bytes;
    device.reported_bytes -= found->second.bytes;
    forget_torch_block(*allocation, found->second);
    allocation->active.erase(found);
    mark_dead(*allocation, event.offset, event.bytes);
  }
  if (device.reported_bytes != event.allocated_bytes) {
    ++statistics_.block_mismatches;
  }
  return true;
}

bool Engine::on_program_prefetch(const deepum_program_event& event) {
  const RangeParts p = parts(event.range);
  Allocation* allocation = live(p.slot);
  if (allocation == nullptr || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
    return false;
  }
  DeviceMemory& device = devices_[allocation->device];
  for (std::uint32_t i = p.first; i < p.first + p.count; ++i) {
    UmBlock& block = allocation->blocks[i];
    if (event.location < 0 && block.resident) {
      end_filling(device);
      device.drop(block);
    } else if (event.location == static_cast<std::int32_t>(allocation->device) && !block.resident && device.free_blocks() > 0) {
      device.take_space(true);
      device.add(block);
      device.spare(block, position_);
      block.populated = true;
      block.confirmed = position_;
      block.confirmed_after = device.fetches;
    }
  }
  return true;
}

// A place that the program prefers on the host stays there: kernels read it over the link, by the program's own will.
bool Engine::on_program_advise(const deepum_program_event& event) {
  const RangeParts p = parts(event.range);
  Allocation* allocation = live(p.slot);
  if (allocation == nullptr || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
    return false;
  }
  if (event.advice == DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION || event.advice == DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
    for (std::uint32_t i = p.first; i < p.first + p.count; ++i) {
      allocation->blocks[i].host = event.advice == DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION && event.location < 0;
    }
  }
  return true;
}

// Faulted in, so it is there now; but the belief about its neighbours is shaken.
bool Engine::on_fault(const deepum_fault_event& event) {
  const RangeParts p = parts(event.range);
  Allocation* allocation = live(p.slot);
  if (allocation == nullptr || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
    return false;
  }
  DeviceMemory& device = devices_[allocation->device];
  const bool wrote = (event.header.flags & (DEEPUM_FAULT_WRITE | DEEPUM_FAULT_ATOMIC)) != 0;
  statistics_.faults_observed += event.faults;
  statistics_.faults_observed_writing += wrote ? event.faults : 0;
  const std::uint64_t end = std::uint64_t{p.first} + p.count;
  // The write of a duplicate faults though all of it is there.
  const bool evident = !(wrote && may_ever_duplicate());
  std::uint64_t taken = 0;
  const std::uint64_t far = std::min<std::uint64_t>(end + kShakenBlocks, allocation->blocks.size());
  for (std::uint64_t i = p.first - std::min(p.first, kShakenBlocks); i < far; ++i) {
    const bool faulted = i >= p.first && i < end;
    UmBlock& block = allocation->blocks[i];
    taken += faulted && evident && was_taken(device, *allocation, block) ? 1 : 0;
    block.confirmed = faulted ? position_ : 0;
    block.confirmed_after = device.fetches;
    block.faulted = block.faulted || faulted;
    block.written = block.written || (faulted && wrote);
  }
  if (taken != 0) {
    note_taken(device, taken);
  }
  if (wrote) {
    note_written({p.slot, p.first, p.count});
  }
  return true;
}

// What was not carried out is not believed any longer. Commands given long ago are forgotten; doubt heals what they leave.
void Engine::on_moved(const deepum_moved_event& event) {
  const bool refused = event.status == DEEPUM_MOVED_REFUSED;
  if (event.status != DEEPUM_MOVED_FAILED && event.status != DEEPUM_MOVED_CANCELLED && !refused) {
    return;
  }
  const deepum_command& given = given_[event.command % kRemembered];
  Allocation* allocation = live(given.slot);
  if (given.id == 0 || given.id != event.command || (refused && given.kind != DEEPUM_COMMAND_DISCARD)) {
    return;
  }
  if (given.kind == DEEPUM_COMMAND_DISCARD) {
    statistics_.discards_undone += given.block_count;
  }
  if (refused && !discards_refused_) {
    stop_discarding();
  }
  if (allocation == nullptr || allocation->generation != given.generation) {
    return;
  }
  DeviceMemory& device = devices_[allocation->device];
  for (std::uint64_t i = given.first_block; i < std::uint64_t{given.first_block} + given.block_count && i < allocation->blocks.size();
       ++i) {
    UmBlock& block = allocation->blocks[i];
    if (given.kind == DEEPUM_COMMAND_ADVISE && given.advice == DEEPUM_MEM_ADVISE_SET_READ_MOSTLY) {
      forget_duplicate(block);
    } else if (given.kind == DEEPUM_COMMAND_ADVISE) {
      forget_advice(block);
    } else if (given.kind == DEEPUM_COMMAND_COPY_OUT) {
      device.uncopy(block);
    } else if (given.kind == DEEPUM_COMMAND_COLLAPSE) {
      set_mostly(block);
    } else if (block.moved_in == event.command && block.resident && block.moved_in > block.moved_out) {
      device.drop(block);
    } else if (block.discarded == event.command && given.kind == DEEPUM_COMMAND_DISCARD) {
      block.populated = true;  // as it was
      if (block.dead && !refused) {
        pause_discarding();
      }
      if (!block.resident && block.discarded > block.moved_in && block.discarded > block.moved_out) {
        ++device.used_blocks;
        device.add(block);
        const auto space = std::ranges::find(device.emptied, event.command, &Space::id);
        if (space != device.emptied.end()) {
          device.emptied.erase(space);
        }
      }
    } else if (block.moved_out == event.command && !block.resident && block.moved_out > block.moved_in) {
      ++device.used_blocks;
      device.add(block);
    }
  }
  if (given.kind == DEEPUM_COMMAND_DISCARD) {
    evict_surplus(device, allocation->device);
  }
}

}  // namespace deepum::core
