// Events to who takes them: launches (launches.cpp), what is told of memory (memory_events.cpp), faults (uses.cpp). What is kept of names.
#include "engine.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace deepum::core {
namespace {

// Most names that hostile events make us keep.
constexpr std::size_t kMostNames = 1u << 20;
constexpr std::size_t kFarthest = 1u << 16;  // launches: next uses are told apart up to there,
constexpr unsigned kTurn = 3;                // by eights (a power of two)

template <typename T>
const T* as(const deepum_event_header* header) {
  return header->words * std::size_t{8} >= sizeof(T) ? reinterpret_cast<const T*>(header) : nullptr;
}

}  // namespace

Engine::Engine(const deepum_core_settings& settings)
    : settings_(settings),
      executions_(settings.execution_ids, settings.execution_records, std::size_t{settings.table_mebibytes} << 20),
      history_(history_bytes(settings)),
      given_(kRemembered) {
  for (DeviceMemory& device : devices_) {
    if (settings.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE && settings.policy == DEEPUM_POLICY_CORRELATION) {
      device.by_next_use = true;
      device.launch_queue = settings.launch_queue;
      device.expected.span(kFarthest, kTurn);
      device.expected_copied.span(kFarthest, kTurn);
    } else {
      device.expected.span(settings.prefetch_degree);
    }
    device.only_placed = settings.prediction == DEEPUM_PREDICT_TABLES && settings.eviction_order != DEEPUM_EVICT_FURTHEST_NEXT_USE;
    device.driver_evicts = settings.pre_eviction == 0;
    device.arrivals.order_by_migration();
    if (settings.eviction_order == DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED) {
      device.kept.order_by_migration();
      device.copied.order_by_migration();
    }
  }
}

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
    try {
      statistics_.malformed_events += dispatch(reinterpret_cast<const deepum_event_header*>(events + at)) ? 0 : 1;
    } catch (const std::bad_alloc&) {  // the event is lost on us, not on the program, which may be waiting for its decisions
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
    case DEEPUM_EVENT_PROGRESS: {
      const auto* event = as<deepum_progress_event>(header);
      return event != nullptr && on_progress(*event);
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
    case DEEPUM_EVENT_FREE_MEMORY: {
      const auto* event = as<deepum_free_memory_event>(header);
      return event != nullptr && (on_free_memory(*event), true);
    }
    case DEEPUM_EVENT_USAGE: {
      const auto* event = as<deepum_usage_event>(header);
      return event != nullptr && (on_usage(*event), true);
    }
    case DEEPUM_EVENT_PROGRAM_ADVISE: {
      const auto* event = as<deepum_program_event>(header);
      return event != nullptr && on_program_advise(*event);
    }
    case DEEPUM_EVENT_SYNCHRONISE:
      on_wait();
      return true;
    case DEEPUM_EVENT_STREAM_DESTROYED:
      return true;
    default:
      return false;
  }
}

// Launches and allocations were missed. What lives is announced again next; what was learned stays.
void Engine::on_lost() {
  forget_trials();
  pace_.forget();
  remote_.abandon();
  for (DeviceMemory& device : devices_) {
    end_filling(device);
    device.to_copy.clear();
    device.to_settle.clear();
  }
  for (Allocation& allocation : slots_) {
    if (allocation.live) {
      forget_allocation(allocation);
    }
  }
  forget_context();
}

// Names have half of the memory for tables at most, unless what lives has more.
void Engine::bound_names() {
  const std::size_t most = std::min((std::size_t{settings_.table_mebibytes} << 20) / 2 / Names::kBytes, kMostNames);
  if (names_.size() >= std::max(most, 2 * names_kept_)) {
    forget_tables();
    names_kept_ = names_.size();
  }
  executions_.share_with(names_.bytes() + Names::kBytes + history_bytes(settings_));
}

// Learning starts again, with the names of what lives.
void Engine::forget_tables() {
  Names names;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Allocation& allocation = slots_[slot];
    if (!allocation.live) {
      continue;
    }
    const auto rename = [&](std::uint32_t& index) {
      const std::uint32_t first = names_.first(index);
      index = names.intern(names_.name(index));
      names.bind(index, slot, first);
    };
    rename(allocation.name);
    for (UmBlock& block : allocation.blocks) {
      block.user = {};
      block.awaited = 0;
    }
    for (auto& [offset, block] : allocation.active) {
      rename(block.name);
    }
  }
  forget_trials();
  names_ = std::move(names);
  executions_ = ExecutionTable(settings_.execution_ids, settings_.execution_records, std::size_t{settings_.table_mebibytes} << 20);
  history_ = History(history_bytes(settings_));
  forget_context();
}

void Engine::forget_context() {
  context_ = {};
  drop_chain();
  expect_nothing();
}

std::size_t Engine::take_commands(deepum_command* commands, std::size_t most) {
  const std::size_t count = std::min(most, commands_.size() - taken_);
  std::copy_n(commands_.begin() + static_cast<std::ptrdiff_t>(taken_), count, commands);
  taken_ += count;
  if (taken_ == commands_.size()) {
    commands_.clear();
    taken_ = 0;
    last_of_direction_ = {};
    last_advice_ = 0;
  }
  return count;
}

deepum_core_statistics Engine::statistics() const {
  deepum_core_statistics s = statistics_;
  s.execution_ids = executions_.size();
  s.allocated_bytes = allocated_bytes_;
  s.table_bytes = executions_.bytes() + names_.bytes() + history_.bytes();
  s.resident_bytes = s.dead_bytes = s.window_mistakes = s.capacity_bytes = s.capacity_withdrawn_bytes = 0;
  for (const DeviceMemory& device : devices_) {
    s.capacity_bytes += device.capacity_blocks * kBlockBytes;
    s.capacity_withdrawn_bytes += device.withdrawn_blocks * kBlockBytes;
    s.resident_bytes += device.used_blocks * kBlockBytes;
    s.window_mistakes += device.mistakes;
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
  return (b.resident ? std::uint32_t{DEEPUM_BLOCK_RESIDENT} : 0) | (b.populated ? std::uint32_t{DEEPUM_BLOCK_POPULATED} : 0) |
         (b.faulted ? std::uint32_t{DEEPUM_BLOCK_FAULTED} : 0) | (b.written ? std::uint32_t{DEEPUM_BLOCK_WRITTEN} : 0);
}

}  // namespace deepum::core
