// Events into tables and belief.
#include "engine.hpp"

#include <algorithm>
#include <cstring>

namespace deepum::core {
namespace {

constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
constexpr std::uint32_t kMostSlots = 1u << DEEPUM_RANGE_SLOT_BITS;
constexpr std::uint64_t kMostBlocks = 1u << DEEPUM_RANGE_FIRST_BITS;
constexpr std::uint64_t kMostBelievedBlocks = 1u << 24;  // 32 TiB over all allocations: a bound on what hostile events make us keep

struct RangeParts {
  std::uint32_t slot, first, count;
};
RangeParts parts(deepum_block_range range) {
  return {static_cast<std::uint32_t>(range >> DEEPUM_RANGE_SLOT_SHIFT),
          static_cast<std::uint32_t>(range >> DEEPUM_RANGE_FIRST_SHIFT) & ((1u << DEEPUM_RANGE_FIRST_BITS) - 1),
          static_cast<std::uint32_t>(range) & ((1u << DEEPUM_RANGE_COUNT_BITS) - 1)};
}

template <typename T>
const T* as(const deepum_event_header* header) {
  return header->words * std::size_t{8} >= sizeof(T) ? reinterpret_cast<const T*>(header) : nullptr;
}

}  // namespace

Engine::Engine(const deepum_core_settings& settings)
    : settings_(settings), executions_(settings.execution_ids, settings.execution_records, std::size_t{settings.table_mebibytes} << 20) {}

std::uint64_t Engine::process(const std::uint8_t* events, std::size_t bytes) {
  std::uint64_t last = 0;
  alignas(8) deepum_event_header header;
  for (std::size_t at = 0; at + sizeof header <= bytes;) {
    std::memcpy(&header, events + at, sizeof header);
    const std::size_t length = std::size_t{header.words} * 8;
    if (length < sizeof header || header.words > DEEPUM_MAX_EVENT_WORDS || at + length > bytes) {
      ++statistics_.malformed_events;
      break;
    }
    ++statistics_.events;
    sequence_ = last = header.sequence;
    if (!dispatch(reinterpret_cast<const deepum_event_header*>(events + at))) {
      ++statistics_.malformed_events;
    }
    at += length;
  }
  return last;
}

bool Engine::dispatch(const deepum_event_header* header) {
  if (header->device >= DEEPUM_MAX_DEVICES) {
    return false;
  }
  switch (header->kind) {
    case DEEPUM_EVENT_DEVICE:
    case DEEPUM_EVENT_CAPACITY: {
      const auto* event = as<deepum_device_event>(header);
      return event != nullptr && (on_device(*event), true);
    }
    case DEEPUM_EVENT_ALLOCATE: {
      const auto* event = as<deepum_allocate_event>(header);
      return event != nullptr && on_allocate(*event);
    }
    case DEEPUM_EVENT_FREE: {
      const auto* event = as<deepum_free_event>(header);
      return event != nullptr && on_free(event->slot, event->generation);
    }
    case DEEPUM_EVENT_BLOCK_ACTIVE:
    case DEEPUM_EVENT_BLOCK_INACTIVE: {
      const auto* event = as<deepum_block_event>(header);
      return event != nullptr && on_block(*event, header->kind == DEEPUM_EVENT_BLOCK_ACTIVE);
    }
    case DEEPUM_EVENT_EXECUTE: {
      const auto* event = as<deepum_execute_event>(header);
      if (event == nullptr) {
        return false;
      }
      const std::size_t count = std::size_t{event->write_ranges} + event->read_ranges + event->unknown_ranges;
      if (sizeof *event + count * sizeof(deepum_block_range) > header->words * std::size_t{8} || event->stream >= DEEPUM_MAX_STREAMS) {
        return false;
      }
      return on_execute(*event, {reinterpret_cast<const deepum_block_range*>(event + 1), count});
    }
    case DEEPUM_EVENT_PROGRAM_PREFETCH: {
      const auto* event = as<deepum_program_event>(header);
      return event != nullptr && on_program_prefetch(*event);
    }
    case DEEPUM_EVENT_FAULT: {
      const auto* event = as<deepum_fault_event>(header);
      return event != nullptr && on_fault(*event);
    }
    case DEEPUM_EVENT_MOVED: {
      const auto* event = as<deepum_moved_event>(header);
      return event != nullptr && (on_moved(*event), true);
    }
    case DEEPUM_EVENT_LOST: {
      const auto* event = as<deepum_lost_event>(header);
      if (event == nullptr) {
        return false;
      }
      statistics_.events_lost += event->events;
      on_lost();
      return true;
    }
    case DEEPUM_EVENT_SYNCHRONISE:
    case DEEPUM_EVENT_STREAM_DESTROYED:
    case DEEPUM_EVENT_PROGRAM_ADVISE:
      return true;
    default:
      return false;
  }
}

void Engine::on_device(const deepum_device_event& event) {
  DeviceMemory& device = devices_[event.header.device];
  device.known = true;
  device.capacity_blocks = std::min(event.capacity_bytes, event.total_bytes) / kBlockBytes;
}

Allocation* Engine::live(std::uint32_t slot) { return slot < slots_.size() && slots_[slot].live ? &slots_[slot] : nullptr; }

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
  while (slots_.size() <= event.slot) {
    slots_.emplace_back();
  }
  Allocation& allocation = slots_[event.slot];
  allocation = {};
  allocation.live = true;
  allocation.of_program = (event.header.flags & DEEPUM_ALLOCATION_OF_PROGRAM) != 0;
  allocation.generation = event.generation;
  allocation.device = event.header.device;
  allocation.bytes = event.bytes;
  allocation.first_offset = event.first_offset % kBlockBytes;
  allocation.name = names_.intern(event.name);
  allocation.blocks.resize(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    allocation.blocks[i].slot = event.slot;
    allocation.blocks[i].index = static_cast<std::uint32_t>(i);
  }
  names_.bind(allocation.name, event.slot);
  devices_[allocation.device].allocated_blocks += blocks;
  allocated_bytes_ += event.bytes;
  statistics_.peak_allocated_bytes = std::max(statistics_.peak_allocated_bytes, allocated_bytes_);
  return true;
}

void Engine::forget_allocation(Allocation& allocation) {
  DeviceMemory& device = devices_[allocation.device];
  for (UmBlock& block : allocation.blocks) {
    if (block.resident) {  // its space is free with the allocation
      device.remove(&block);
      --device.used_blocks;
    }
  }
  device.allocated_blocks -= allocation.blocks.size();
  allocated_bytes_ -= allocation.bytes;
  reported_allocated_ -= allocation.active_bytes;
  for (const auto& [offset, block] : allocation.active) {
    forget_torch_block(allocation, block);
  }
  names_.bind(allocation.name, -1);
  allocation = {};
}

void Engine::forget_torch_block(const Allocation& allocation, const TorchBlock& block) {
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

// PyTorch's blocks: what is not handed out is dead. The allocator's own total in each report checks ours.
bool Engine::on_block(const deepum_block_event& event, bool active) {
  Allocation* allocation = live(event.slot);
  if (allocation == nullptr || allocation->generation != event.generation || event.bytes == 0 || event.offset > allocation->bytes ||
      event.bytes > allocation->bytes - event.offset) {
    return false;
  }
  allocation->reported = true;
  const auto found = allocation->active.find(event.offset);
  if (active) {
    if (found != allocation->active.end()) {
      allocation->active_bytes -= found->second.bytes;
      reported_allocated_ -= found->second.bytes;
      forget_torch_block(*allocation, found->second);
    }
    const std::uint32_t ordinal = torch_blocks_.take(allocation->device, event.bytes);
    const std::uint32_t name = names_.intern(TorchBlockNames::name(allocation->device, event.bytes, ordinal));
    names_.bind(name, event.slot, static_cast<std::uint32_t>((allocation->first_offset + event.offset) / kBlockBytes));
    allocation->active[event.offset] = {event.bytes, ordinal, name};
    allocation->active_bytes += event.bytes;
    reported_allocated_ += event.bytes;
  } else if (found != allocation->active.end()) {
    allocation->active_bytes -= found->second.bytes;
    reported_allocated_ -= found->second.bytes;
    forget_torch_block(*allocation, found->second);
    allocation->active.erase(found);
  }
  if (reported_allocated_ != event.allocated_bytes) {
    ++statistics_.block_mismatches;
  }
  return true;
}

// The run in terms of the PyTorch block that it is the place of: the one that spans just these UM blocks, else the one that fills most of
// them; in terms of the allocation where there is none, or one of PyTorch's small pool, of which many share a UM block.
BlockRun Engine::name_run(const Allocation& allocation, std::uint32_t first, std::uint32_t count) const {
  const std::uint64_t begin = std::uint64_t{first} * kBlockBytes, end = begin + std::uint64_t{count} * kBlockBytes;
  const TorchBlock* best = nullptr;
  std::uint64_t best_bytes = 0;
  if (!allocation.active.empty()) {
    auto at = allocation.active.upper_bound(begin - std::min(begin, allocation.first_offset));
    if (at != allocation.active.begin()) {
      --at;
    }
    for (; at != allocation.active.end() && at->first + allocation.first_offset < end; ++at) {
      const std::uint64_t from = at->first + allocation.first_offset, to = from + at->second.bytes;
      if (to <= begin) {
        continue;
      }
      const bool spans = from >= begin && to <= end && from / kBlockBytes == first && (to - 1) / kBlockBytes == first + count - 1;
      const std::uint64_t bytes = std::min(to, end) - std::max(from, begin) + (spans ? end : 0);
      if (bytes > best_bytes) {
        best = &at->second;
        best_bytes = bytes;
      }
    }
  }
  if (best == nullptr || best->bytes <= TorchBlockNames::kMostSmallBytes || names_.first(best->name) > first) {
    return {allocation.name, first, count};
  }
  return {best->name, first - names_.first(best->name), count};
}

bool Engine::on_execute(const deepum_execute_event& event, std::span<const deepum_block_range> ranges) {
  bool sound = true;
  std::uint64_t hash = event.execution_hash;
  runs_.clear();
  for (const deepum_block_range range : ranges) {
    const RangeParts p = parts(range);
    const Allocation* allocation = live(p.slot);
    if (allocation == nullptr || p.count == 0 || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
      sound = false;
      continue;
    }
    runs_.push_back(name_run(*allocation, p.first, p.count));
    if (allocation->reported && runs_.back().name != allocation->name) {  // the program's hash leaves places in PyTorch's memory out
      hash = TorchBlockNames::mix(hash ^ names_.name(runs_.back().name));
    }
  }
  ++statistics_.launches;
  ++position_;
  const ExecutionId id = executions_.identify(hash);
  executions_.learn(context_, id);
  Execution& execution = executions_.at(id);
  ++execution.launches;
  const std::size_t before = execution.blocks.bytes();
  execution.blocks.learn(runs_, {settings_.block_table_rows, settings_.block_table_ways, settings_.block_table_successors});
  executions_.note_bytes(static_cast<std::ptrdiff_t>(execution.blocks.bytes()) - static_cast<std::ptrdiff_t>(before));
  follow(id);

  place(runs_, position_, true);
  const std::uint64_t stream = 1ull << event.stream;
  for (const BlockRun& run : runs_) {
    Allocation& allocation = slots_[static_cast<std::size_t>(names_.slot(run.name))];
    const std::uint32_t origin = names_.first(run.name) + run.first;
    for (std::uint32_t i = origin; i < origin + run.count; ++i) {
      UmBlock& block = allocation.blocks[i];
      block.use_sequence = event.header.sequence;
      block.streams |= stream;
      block.populated = true;
    }
    statistics_.operations += run.count;
  }
  if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
    extend_chain();
    place_ahead();
  }
  return sound;
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
      device.remove(&block);
      --device.used_blocks;
      block.resident = false;
    } else if (event.location == static_cast<std::int32_t>(allocation->device) && !block.resident && device.free_blocks() > 0) {
      device.take_space();
      block.resident = true;
      block.populated = true;
      block.confirmed = position_;
      device.append(&block);
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
  for (UmBlock& block : allocation->blocks) {
    const bool faulted = block.index >= p.first && block.index < p.first + p.count;
    block.confirmed = faulted ? position_ : 0;
  }
  return true;
}

void Engine::on_moved(const deepum_moved_event& event) {
  if (event.status != DEEPUM_MOVED_FAILED && event.status != DEEPUM_MOVED_CANCELLED) {
    return;
  }
  for (Allocation& allocation : slots_) {  // rare
    for (UmBlock& block : allocation.blocks) {
      DeviceMemory& device = devices_[allocation.device];
      if (block.moved_in == event.command && block.resident && block.moved_in > block.moved_out) {
        device.remove(&block);
        --device.used_blocks;
        block.resident = false;
      } else if (block.moved_out == event.command && !block.resident && block.moved_out > block.moved_in) {
        ++device.used_blocks;
        block.resident = true;
        device.append(&block);
      }
    }
  }
}

// Launches and allocations were missed. What lives is announced again next; what was learned stays.
void Engine::on_lost() {
  for (Allocation& allocation : slots_) {
    if (allocation.live) {
      forget_allocation(allocation);
    }
  }
  context_ = {};
  chain_.clear();
  placed_ = 0;
  ++epoch_;
}

std::size_t Engine::take_commands(deepum_command* commands, std::size_t most) {
  const std::size_t count = std::min(most, commands_.size() - taken_);
  std::copy_n(commands_.begin() + static_cast<std::ptrdiff_t>(taken_), count, commands);
  taken_ += count;
  if (taken_ == commands_.size()) {
    commands_.clear();
    taken_ = 0;
  }
  return count;
}

deepum_core_statistics Engine::statistics() const {
  deepum_core_statistics s = statistics_;
  s.execution_ids = executions_.size();
  s.allocated_bytes = allocated_bytes_;
  s.table_bytes = executions_.bytes() + names_.size() * 32;
  s.resident_bytes = s.dead_bytes = 0;
  for (const DeviceMemory& device : devices_) {
    s.resident_bytes += device.used_blocks * kBlockBytes;
  }
  for (const Allocation& allocation : slots_) {
    s.dead_bytes += allocation.live && allocation.reported ? allocation.bytes - std::min(allocation.bytes, allocation.active_bytes) : 0;
  }
  return s;
}

std::uint32_t Engine::block_state(std::uint32_t slot, std::uint64_t block) const {
  if (slot >= slots_.size() || !slots_[slot].live || block >= slots_[slot].blocks.size()) {
    return 0;
  }
  const UmBlock& b = slots_[slot].blocks[block];
  return (b.resident ? std::uint32_t{DEEPUM_BLOCK_RESIDENT} : 0) | (b.populated ? std::uint32_t{DEEPUM_BLOCK_POPULATED} : 0);
}

}  // namespace deepum::core
