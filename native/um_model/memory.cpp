// The engine's face: what is mapped, who holds it, accesses by the CPU, counters.
#include <algorithm>

#include "state.hpp"

namespace deepum::um_model {
namespace {

void add(Counters& sum, const Counters& one) {
  sum.compute_ns += one.compute_ns;
  sum.stall_ns += one.stall_ns;
  sum.kernels += one.kernels;
  sum.copies += one.copies;
  sum.faults += one.faults;
  sum.fault_batches += one.fault_batches;
  sum.bytes_h2d += one.bytes_h2d;
  sum.bytes_d2h += one.bytes_d2h;
  sum.bytes_demand += one.bytes_demand;
  sum.bytes_prefetched += one.bytes_prefetched;
  sum.bytes_prefetched_used += one.bytes_prefetched_used;
  sum.bytes_driver_evicted += one.bytes_driver_evicted;
  sum.bytes_prefetched_out += one.bytes_prefetched_out;
  sum.bytes_discarded += one.bytes_discarded;
  sum.bytes_accessed += one.bytes_accessed;
  sum.bytes_missing += one.bytes_missing;
  sum.discarded_uses += one.discarded_uses;
  sum.discarded_uses_sure += one.discarded_uses_sure;
}

}  // namespace

void Engine::map_managed(Range range, int device) {
  if (range.bytes == 0) {
    return;
  }
  State& s = *state_;
  if (s.observer != nullptr) {
    s.observer->mapped(range, true, device);
  }
  s.blocks.map(range, MemoryKind::managed, device);
  s.managed_bytes += range.bytes;
  s.peak_managed_bytes = std::max(s.peak_managed_bytes, s.managed_bytes);
  const auto d = static_cast<std::size_t>(device);
  s.device_managed[d] += range.bytes;
  s.device_peak_managed[d] = std::max(s.device_peak_managed[d], s.device_managed[d]);
}

// The driver evicts managed memory for it while the program waits (uvm_pmm_gpu.c).
void Engine::map_device(Range range, int device) {
  if (range.bytes == 0) {
    return;
  }
  State& s = *state_;
  if (s.observer != nullptr) {
    s.observer->mapped(range, false, device);
  }
  s.blocks.map(range, MemoryKind::device, device);
  s.run_until(s.now(kProgram));
  s.residency.take_plain(device, range.bytes);
  Evicted evicted;
  while (s.residency.overfull(device)) {
    if (s.residency.make_room(device, 0, s.timeline.now(), 0, evicted)) {
      break;
    }
    if (!s.step(kForever)) {
      break;  // what is left is on its way: let it arrive
    }
    s.move_clock(kProgram, s.timeline.now());
  }
  s.spend(kProgram, evicted.ns);
}

void Engine::unmap(std::uint64_t address) {
  State& s = *state_;
  if (s.observer != nullptr) {
    s.observer->unmapped(address);
  }
  s.run_until(s.now(kProgram));
  const BlockTable::Mapping mapping = s.blocks.unmap(address);
  if (mapping.bytes == 0) {
    return;
  }
  if (mapping.kind == MemoryKind::device) {
    s.residency.give_plain(mapping.device, mapping.bytes);
    return;
  }
  s.managed_bytes -= mapping.bytes;
  s.device_managed[static_cast<std::size_t>(mapping.device)] -= mapping.bytes;
  const std::uint64_t last = (address + mapping.bytes - 1) / kBlockBytes;
  for (std::uint64_t number = address / kBlockBytes; number <= last; ++number) {
    Block& block = *s.blocks.block(number);
    if (block.mappings != 0) {
      continue;
    }
    s.residency.forget(block);
    s.residency.on_settled(block);
  }
  if (s.activities != nullptr) {
    const double now = s.timeline.now();
    s.activities->add(activity(DEEPUM_ACTIVITY_RELEASE, mapping.device, now, now, mapping.bytes, 1,
                               s.residency.resident_bytes(mapping.device)));
  }
}

std::uint64_t Engine::memory_bytes(int device) const {
  return state_->residency.memory_bytes(device);
}
std::uint64_t Engine::free_bytes(int device) const { return state_->residency.free_bytes(device); }

bool Engine::is_resident(int device, std::uint64_t address) const {
  const Block* const block = state_->blocks.block(address / kBlockBytes);
  return block != nullptr && block->device == device &&
         (block->on_device >> (address % kBlockBytes / kRegionBytes) & 1) != 0;
}

bool Engine::content(std::uint64_t address, Content& content) const {
  const Block* const block = state_->blocks.block(address / kBlockBytes);
  if (block == nullptr) {
    return false;
  }
  const HostMemory* const host = state_->residency.host();
  const HostMemory::Place place = host != nullptr ? host->place(*block) : HostMemory::Place{0, 0};
  content = {block->device,  block->on_device, block->on_cpu,   block->arriving,
             block->leaving, block->discarded, place.in_memory, place.on_disk};
  return true;
}

void Engine::pin(std::uint64_t bytes) {
  if (HostMemory* const host = state_->residency.host()) {
    State& s = *state_;
    if (!host->has_room_to_pin(bytes, s.now(kProgram))) {
      s.run_to([&] { return host->has_room_to_pin(bytes, s.timeline.now()); });
      s.move_clock(kProgram, s.timeline.now());
    }
    host->pin(bytes);
  }
}

void Engine::unpin(std::uint64_t bytes) {
  if (HostMemory* const host = state_->residency.host()) {
    host->unpin(bytes);
  }
}

std::uint64_t Engine::pinned() const {
  const HostMemory* const host = state_->residency.host();
  return host != nullptr ? host->pinned() : 0;
}

bool Engine::holds(std::uint64_t managed, std::uint64_t pinned, std::uint64_t plain) const {
  const Residency& residency = state_->residency;
  const HostMemory* const host = residency.host();
  if (host == nullptr) {
    return true;
  }
  if (pinned > host->size() || host->pinned() > host->size() - pinned) {
    return false;
  }
  std::uint64_t room = host->size() - pinned - host->pinned();
  if (host->has_disk()) {
    return true;
  }
  for (int device = 0; device < residency.devices(); ++device) {
    const std::uint64_t all = residency.memory_bytes(device);
    room += (all - std::min(all, residency.plain_bytes(device))) / kBlockBytes * kBlockBytes;
  }
  return plain <= room && managed <= room - plain &&
         state_->managed_bytes <= room - plain - managed;
}

// A CPU fault a block: unmap on the device, copy, map (costs as an eviction's, with the regions
// that are touched).
void Engine::cpu_access(Host host, Range range, bool write) {
  State& s = *state_;
  s.run_until(s.now(host));
  double ns = 0;
  each_block(s.blocks, range, true, [&](Block& block, Regions regions, std::uint64_t) {
    Residency& residency = s.residency;
    residency.settle(block);
    const double before = s.timeline.now() + ns;
    if (const Regions there = regions & block.on_device; there != 0) {
      const Regions copied = there & ~block.on_cpu & ~block.discarded;
      const int device = block.device;
      Link& link = residency.to_cpu(device);
      const double copy_ns = link.time(static_cast<double>(bytes_of(copied)));
      if (copied != 0) {
        ns +=
            std::max(s.machine.eviction_ns_per_block - link.time(static_cast<double>(kBlockBytes)),
                     0.0) +
            copy_ns;
      }
      link.occupy(s.timeline.now(), copy_ns);
      residency.counters(device).bytes_d2h += bytes_of(copied);
      residency.counters(device).bytes_discarded += bytes_of(there & block.discarded);
      ns += residency.to_host(block, copied, before) - before;
      if (write || !block.read_mostly) {
        residency.drop(block, there);
      }
    }
    const double copied_by = s.timeline.now() + ns;
    ns += residency.use_on_host(block, regions, write, copied_by) - copied_by;
    if (write) {
      residency.rewritten(block, regions);
    }
  });
  s.spend(host, ns);
}

Counters Engine::counters(int device) const {
  const State& s = *state_;
  Counters result{};
  if (device == kCpu) {
    for (int d = 0; d < s.residency.devices(); ++d) {
      add(result, s.residency.counters(d));
      result.resident_bytes += s.residency.resident_bytes(d);
    }
    result.gpu_time_ns = s.last_work;
    result.peak_resident_bytes = s.residency.peak_total();
    result.managed_bytes = s.managed_bytes;
    result.peak_managed_bytes = s.peak_managed_bytes;
    if (const HostMemory* const host = s.residency.host()) {
      result.host_bytes = host->used();
      result.peak_host_bytes = host->peak();
      result.bytes_disk_read = host->bytes_read();
      result.bytes_disk_written = host->bytes_written();
    }
    return result;
  }
  const auto d = static_cast<std::size_t>(device);
  result = s.residency.counters(device);
  result.resident_bytes = s.residency.resident_bytes(device);
  result.gpu_time_ns = s.device_last_work[d];
  result.managed_bytes = s.device_managed[d];
  result.peak_managed_bytes = s.device_peak_managed[d];
  return result;
}

}  // namespace deepum::um_model
