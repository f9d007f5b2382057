#include "residency.hpp"

#include <algorithm>
#include <cassert>

namespace deepum::um_model {

Residency::Residency(const Machine& machine, const Options& options)
    : machine_(machine), devices_(static_cast<std::size_t>(std::max(options.devices, 1))) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    const std::vector<std::uint64_t>& each = options.memory_of_device;
    const std::uint64_t memory_bytes =
        each.empty() ? options.memory_bytes : each[std::min(i, each.size() - 1)];
    device.memory = memory_bytes != 0 ? memory_bytes : machine.memory_bytes;
    device.h2d.gbps = machine.h2d_gbps;
    device.d2h.gbps = machine.d2h_gbps;
  }
  if (const std::uint64_t host =
          options.host_memory_bytes != 0 ? options.host_memory_bytes : machine.host_memory_bytes;
      host != 0) {
    host_ = std::make_unique<HostMemory>(machine, host);
  }
}

std::uint64_t Residency::capacity(int device) const {
  const Device& d = at(device);
  return d.memory > d.plain_bytes ? (d.memory - d.plain_bytes) / kBlockBytes : 0;
}

std::uint64_t Residency::free_bytes(int device) const {
  const Device& d = at(device);
  const std::uint64_t taken = d.plain_bytes + d.chunks * kBlockBytes;
  return d.memory > taken ? d.memory - taken : 0;
}

// --- Chunks

void Residency::release_chunk(Block& block) {
  Device& d = at(block.device);
  d.order.remove(block);
  --d.chunks;
  --chunks_total_;
  block.device = kNoLocation;
  block.prefetched = 0;
}

bool Residency::make_room(int device, std::uint64_t chunks, double now, std::uint64_t batch,
                          Evicted& evicted) {
  Device& d = at(device);
  const std::uint64_t most = capacity(device);
  if (chunks > most) {
    return false;
  }
  while (d.chunks + chunks > most) {
    Block* const block = d.order.victim(d.needed, batch);
    if (block == nullptr) {
      return false;
    }
    evict(*block, now, evicted);
  }
  return true;
}

bool Residency::take_chunk(int device, Block& block, double now, std::uint64_t batch,
                           Evicted& evicted) {
  if (block.device == device) {
    return true;
  }
  if (host_ != nullptr) {
    host_->hold(&block);
  }
  const bool made = make_room(device, 1, now, batch, evicted);
  if (host_ != nullptr) {
    host_->hold(nullptr);
  }
  if (!made) {
    return false;
  }
  if (block.device >= 0) {
    // From another device: by way of the host; the second half is the caller's transfer.
    Device& source = at(block.device);
    const Regions copied = block.on_device & ~block.discarded & ~block.on_cpu;
    source.counters.bytes_d2h += bytes_of(copied);
    source.d2h.occupy(now, source.d2h.time(static_cast<double>(bytes_of(copied))));
    const double at = now + evicted.ns;
    evicted.ns += to_host(block, copied, at) - at;
    block.on_device = block.discarded = 0;
    release_chunk(block);
  }
  Device& d = at(device);
  block.device = static_cast<std::int16_t>(device);
  block.remote_mapped = false;
  ++d.chunks;
  ++chunks_total_;
  d.counters.peak_resident_bytes = std::max(d.counters.peak_resident_bytes, d.chunks * kBlockBytes);
  peak_total_ = std::max(peak_total_, chunks_total_ * kBlockBytes);
  order_of(block).add(block);
  return true;
}

void Residency::evict(Block& block, double now, Evicted& evicted) {
  Device& d = at(block.device);
  const Regions copied = block.on_device & ~block.discarded & ~block.on_cpu;
  const std::uint64_t bytes = bytes_of(copied);
  const double whole = d.d2h.time(static_cast<double>(kBlockBytes));
  const double link_ns = d.d2h.time(static_cast<double>(bytes));
  evicted.blocks += 1;
  evicted.copied += bytes;
  evicted.ns += std::max(machine_.eviction_ns_per_block - (whole - link_ns), 0.0);
  d.d2h.occupy(now, link_ns);
  d.counters.bytes_d2h += bytes;
  d.counters.bytes_driver_evicted += bytes;
  const std::uint64_t dropped = bytes_of(block.on_device & block.discarded);
  d.counters.bytes_discarded += dropped;
  const int device = block.device;
  const double at = now + evicted.ns;
  evicted.ns += to_host(block, copied, at) - at;
  block.on_device = block.discarded = 0;
  release_chunk(block);
  if (activities != nullptr) {
    activities->move_behind(activity(DEEPUM_ACTIVITY_DRIVER_EVICT, device, now, now + link_ns,
                                     bytes, 1, resident_bytes(device)));
    if (dropped != 0) {
      activities->move(
          activity(DEEPUM_ACTIVITY_DISCARD, device, now, now, dropped, 1, resident_bytes(device)));
    }
  }
}

void Residency::evict_random(int device, std::uint64_t random, double now) {
  Device const& d = at(device);
  if (d.chunks == 0) {
    return;
  }
  Block* const block = d.order.used(random % d.chunks);
  if (block != nullptr && block != d.needed) {
    Evicted evicted;
    evict(*block, now, evicted);
  }
}

void Residency::drop(Block& block, Regions regions) {
  order_of(block).remove(block);
  block.on_device &= ~regions;
  block.discarded &= ~regions;
  block.prefetched &= ~regions;
  if (block.on_device == 0) {
    release_chunk(block);
  } else {
    order_of(block).add(block);
  }
}

void Residency::forget(Block& block) {
  settle(block);
  if (block.device >= 0) {
    release_chunk(block);
  }
  off_host(block, kAllRegions);
  const std::uint32_t generation = block.generation + 1, queued = block.queued;
  const std::int16_t queued_to = block.queued_to;
  block = Block{};
  block.generation = generation;
  block.queued = queued;
  block.queued_to = queued_to;
}

// --- Content

void Residency::place(Block& block, Regions regions, bool duplicate) {
  order_of(block).remove(block);
  block.on_device |= regions;
  if (!duplicate) {
    off_host(block, regions);
  }
  block.discarded &= ~regions;
  order_of(block).add(block);
}

void Residency::begin_arrival(Block& block, Regions regions) {
  order_of(block).remove(block);
  block.arriving = regions;
}

void Residency::end_arrival(Block& block) {
  const Regions regions = block.arriving;
  block.arriving = 0;
  ++block.generation;
  place(block, regions, block.read_mostly);
  if (on_settled) {
    on_settled(block);
  }
}

void Residency::begin_leaving(Block& block, Regions regions) {
  order_of(block).remove(block);
  block.leaving = regions;
  block.on_device &= ~regions;
  block.discarded &= ~regions;
  block.prefetched &= ~regions;
}

void Residency::end_leaving(Block& block) {
  block.on_cpu |= block.leaving;  // its place was taken when it began
  block.leaving = 0;
  ++block.generation;
  if (block.on_device == 0) {
    release_chunk(block);
  } else {
    order_of(block).add(block);
  }
  if (on_settled) {
    on_settled(block);
  }
}

void Residency::settle(Block& block) {
  if (block.arriving != 0) {
    end_arrival(block);
  }
  if (block.leaving != 0) {
    end_leaving(block);
  }
}

void Residency::discard(Block& block, Regions regions, std::uint64_t number) {
  settle(block);
  losses.lose(block, regions, number);
  off_host(block, regions);
  block.prefetched &= ~regions;
  if (block.device < 0) {
    return;
  }
  const bool linked = block.in_order;
  order_of(block).remove(block);
  block.discarded |= regions & block.on_device;
  if (linked) {
    order_of(block).add(block);
  }
}

void Residency::rewritten(Block& block, Regions regions) {
  block.lost &= ~regions;
  undiscard(block, regions);
}

void Residency::undiscard(Block& block, Regions regions) {
  if ((block.discarded & regions) == 0) {
    return;
  }
  const bool linked = block.in_order;
  order_of(block).remove(block);
  block.discarded &= ~regions;
  if (linked) {
    order_of(block).add(block);
  }
}

}  // namespace deepum::um_model
