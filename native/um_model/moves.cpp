// What moves blocks: prefetches and copies on the two copy engines, the driver's own eviction, discards.
#include <algorithm>
#include <utility>

#include "state.hpp"

namespace deepum::um_model {

void Engine::State::note_memory(DeviceState& device) {
  Counters& c = device.counters;
  c.resident_bytes = device.memory.resident_bytes();
  c.peak_resident_bytes = std::max(c.peak_resident_bytes, c.resident_bytes);
}

void Engine::State::take_chunk(int device, Block& block) {
  block.device = device;
  block.present = 0;
  ++devices[device].memory.chunks;
  devices[device].memory.append(&block);
  note_memory(devices[device]);
}

void Engine::State::release(int device, Block& block) {
  devices[device].memory.remove(&block);
  --devices[device].memory.chunks;
  block.device = kCpu;
  block.present = block.prefetched = 0;
  block.discarded = false;
  note_memory(devices[device]);
}

// Regions have arrived. Migration refreshes the driver's list; access does not.
void Engine::State::settle(int device, Block& block, Mask mask, bool prefetched) {
  Memory& memory = devices[device].memory;
  const Mask copied = mask & block.on_host;
  block.present |= mask;
  if (!block.read_mostly) {
    block.on_host &= ~mask;
  }
  if (prefetched) {
    block.prefetched |= copied;
    block.discarded = false;
  }
  memory.remove(&block);
  memory.append(&block);
}

void Engine::State::evict(int device, Block& block) {
  DeviceState& d = devices[device];
  const Mask only_copy = block.discarded ? 0 : block.present & ~block.on_host;
  d.counters.bytes_d2h += mask_bytes(only_copy);
  d.counters.bytes_driver_evicted += mask_bytes(only_copy);
  d.counters.bytes_discarded += block.discarded ? mask_bytes(block.present) : 0;
  block.on_host |= only_copy;
  release(device, block);
}

double Engine::State::make_room(int device, std::uint64_t mine) {
  DeviceState& d = devices[device];
  if (d.memory.has_room()) {
    return 0;
  }
  Block* victim = nullptr;
  for (Block* block = d.memory.oldest; block != nullptr; block = block->newer) {
    if (block->pinned == mine || block->in_flight) {
      continue;
    }
    victim = block;  // discarded blocks went to the list's head when they were discarded
    break;
  }
  if (victim == nullptr) {
    return -1;
  }
  const std::uint64_t bytes = victim->discarded ? 0 : mask_bytes(victim->present & ~victim->on_host);
  evict(device, *victim);
  return machine.eviction_ns_per_block * static_cast<double>(bytes) / static_cast<double>(kBlockBytes);
}

void Engine::State::discard(const DiscardWork& work) {
  for (const Range& range : work.ranges) {
    residency.each(range, [&](Block& block, Mask mask) {
      if (mask != block.valid) {
        return;  // only whole blocks
      }
      if (block.device == kCpu) {
        block.on_host = 0;
        return;
      }
      DeviceState& d = devices[block.device];
      if (work.then_prefetch && work.then_location == kCpu) {
        d.counters.bytes_discarded += mask_bytes(block.present);
        block.on_host = 0;
        release(block.device, block);
      } else {
        block.on_host = 0;
        block.prefetched = 0;
        block.discarded = true;
        Memory& memory = d.memory;  // to the head of the list
        memory.remove(&block);
        block.newer = memory.oldest;
        (memory.oldest != nullptr ? memory.oldest->older : memory.newest) = &block;
        memory.oldest = &block;
      }
    });
    if (poison) {
      poison(range);
    }
  }
}

void Engine::State::start_copy(int device, Direction direction, double time) {
  CopyEngine& engine = devices[device].copy[direction];
  if (engine.busy || engine.waiting.empty()) {
    return;
  }
  engine.busy = true;
  engine.stream = engine.waiting.front();
  engine.waiting.pop_front();
  engine.blocks.clear();
  engine.next = 0;
  engine.moving = nullptr;
  engine.bytes = 0;
  time = std::max(time, engine.free_at);
  Work& work = streams[engine.stream].operations.front().work;
  if (auto* move = std::get_if<MoveWork>(&work)) {
    for (const Range& range : move->ranges) {
      residency.each(range, [&](Block& block, Mask) { engine.blocks.push_back(&block); });
    }
    copy_next(device, direction, time + machine.copy_latency_ns);
    return;
  }
  const auto& copy = std::get<CopyWork>(work);
  DeviceState& d = devices[device];
  std::uint64_t over_link = copy.managed.bytes == 0 ? copy.bytes : 0;
  double duration = 0;
  const std::uint64_t mine = ++ticket;
  residency.each(copy.managed, [&](Block& block, Mask mask) {
    const std::uint64_t bytes = std::min<std::uint64_t>(mask_bytes(mask), copy.bytes);
    if (direction == kOut) {  // read where it is
      (block.device != kCpu && (block.present & mask) == mask ? over_link : engine.bytes) += bytes;
      return;
    }
    if (block.device != device && !block.in_flight) {
      if (block.device != kCpu) {
        evict(block.device, block);
      }
      const double room = make_room(device, mine);
      if (room >= 0) {
        duration += room;
        take_chunk(device, block);
      }
    }
    if (block.device == device) {
      block.pinned = mine;
      settle(device, block, mask & ~block.present, false);
      block.on_host &= ~mask;
      block.discarded = false;
      over_link += bytes;
    } else {
      block.on_host |= mask;
      engine.bytes += bytes;
    }
  });
  duration += machine.copy_latency_ns + static_cast<double>(over_link) / (direction == kIn ? machine.h2d_gbps : machine.d2h_gbps) +
              static_cast<double>(engine.bytes) / kHostCopyGbps;
  (direction == kIn ? d.counters.bytes_h2d : d.counters.bytes_d2h) += over_link;
  ++d.counters.copies;
  at(time + duration, direction == kIn ? Happening::copy_in : Happening::copy_out, static_cast<std::uint32_t>(device));
}

// The next block of a prefetch that has to move, if any.
void Engine::State::copy_next(int device, Direction direction, double time) {
  DeviceState& d = devices[device];
  CopyEngine& engine = d.copy[direction];
  const Happening what = direction == kIn ? Happening::copy_in : Happening::copy_out;
  const auto index = static_cast<std::uint32_t>(device);
  while (engine.next < engine.blocks.size()) {
    Block& block = *engine.blocks[engine.next++];
    if (block.in_flight || block.valid == 0) {
      continue;
    }
    if (direction == kOut) {
      if (block.device != device || block.present == 0) {
        continue;
      }
      const Mask only_copy = block.discarded ? 0 : block.present & ~block.on_host;
      if (block.read_mostly) {  // a prefetch duplicates: the device's copy stays
        engine.moving = nullptr;
        block.on_host |= only_copy;
      } else {
        // Unmapped at once; the chunk is free when the copy has ended.
        block.on_host |= only_copy;
        d.memory.remove(&block);
        block.device = kCpu;
        block.present = block.prefetched = 0;
        block.discarded = false;
        engine.moving = &block;
      }
      d.counters.bytes_d2h += mask_bytes(only_copy);
      d.counters.bytes_prefetched_out += mask_bytes(only_copy);
      time += static_cast<double>(mask_bytes(only_copy)) / machine.d2h_gbps;
      at(time, what, index);
      return;
    }
    const Mask bring = block.valid & ~(block.device == device ? block.present : 0);
    if (bring == 0) {  // there: only refreshes the driver's list
      block.discarded = false;
      d.memory.remove(&block);
      d.memory.append(&block);
      continue;
    }
    if (block.device != device) {
      if (block.device != kCpu) {
        evict(block.device, block);
      }
      const double room = make_room(device, ++ticket);
      if (room < 0) {
        continue;  // a prefetch is a hint
      }
      time += room;
      take_chunk(device, block);
    }
    const std::uint64_t bytes = mask_bytes(bring & block.on_host);
    d.counters.bytes_h2d += bytes;
    d.counters.bytes_prefetched += bytes;
    block.in_flight = true;
    engine.moving = &block;
    engine.moving_mask = bring;
    block.arrival = time + static_cast<double>(bytes) / machine.h2d_gbps;
    at(block.arrival, what, index);
    return;
  }
  at(time, what, index);
}

void Engine::State::continue_copy(int device, Direction direction, double time) {
  DeviceState& d = devices[device];
  CopyEngine& engine = d.copy[direction];
  if (Block* block = std::exchange(engine.moving, nullptr); block != nullptr) {
    if (direction == kIn) {
      block->in_flight = false;
      if (block->device == device) {  // else it was freed on the way
        settle(device, *block, engine.moving_mask, true);
      }
    } else {
      --d.memory.chunks;
      note_memory(d);
    }
  }
  if (engine.next < engine.blocks.size()) {
    copy_next(device, direction, time);
  } else {
    finish_copy(device, direction, time);
  }
}

void Engine::State::finish_copy(int device, Direction direction, double time) {
  CopyEngine& engine = devices[device].copy[direction];
  engine.busy = false;
  engine.free_at = time;
  const Stream stream = engine.stream;
  devices[device].counters.gpu_time_ns = std::max(devices[device].counters.gpu_time_ns, time);
  std::function<void()> effect;
  if (auto* copy = std::get_if<CopyWork>(&streams[stream].operations.front().work)) {
    effect = std::move(copy->effect);
  }
  if (effect) {
    effect();
  }
  finish(stream, time);
  start_copy(device, direction, time);
}

// The allocation is gone. Work that is under way may still hold its blocks; what is queued no longer finds them.
void Engine::State::forget_region(std::unique_ptr<Region> region) {
  for (Block& block : region->blocks) {
    if (block.device != kCpu) {
      release(block.device, block);
    }
    block.valid = block.on_host = 0;
    block.in_flight = false;
  }
  unmapped.push_back(std::move(region));
}

}  // namespace deepum::um_model
