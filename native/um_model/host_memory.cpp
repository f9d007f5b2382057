#include "host_memory.hpp"

#include <algorithm>

namespace deepum::um_model {

HostMemory::HostMemory(const Machine& machine, std::uint64_t bytes)
    : size_(bytes),
      keeps_(machine.host_keeps != 0),
      read_{machine.disk_read_gbps, machine.disk_read_latency_ns, 0},
      write_{machine.disk_write_gbps, machine.disk_write_latency_ns, 0} {
  if (has_disk()) {
    const auto buffer = static_cast<double>(machine.disk_buffer_bytes);
    read_.ahead = buffer / read_.gbps;
    write_.ahead = buffer / write_.gbps;
  }
}

HostMemory::Place HostMemory::place(const Block& block) const {
  const auto found = entries_.find(&block);
  return found == entries_.end() ? Place{0, 0}
                                 : Place{found->second.in_memory, found->second.on_disk};
}

void HostMemory::take(Block& block, Entry& entry, Regions regions) {
  if (entry.in_memory == 0) {
    entry.order = order_.insert(order_.end(), &block);
  }
  used_ += bytes_of(regions & ~entry.in_memory);
  entry.in_memory |= regions;
  renew(entry);
  peak_ = std::max(peak_, used());
}

void HostMemory::give(Entry& entry, Regions regions) {
  if ((entry.in_memory & regions) == 0) {
    return;
  }
  used_ -= bytes_of(entry.in_memory & regions);
  entry.in_memory &= ~regions;
  if (entry.in_memory == 0) {
    order_.erase(entry.order);
  }
}

// Content that enters takes a place that is free by now: what it pushes out was copied to a buffer,
// which the disk empties. It waits only for room in that buffer, as memory does that is kept free
// ahead of need (the kernel's watermarks and write-back, Linux mm/vmscan.c).
double HostMemory::write(Entry& entry, Regions regions, double at) {
  entry.on_disk |= regions;
  entry.written = write_.run(at, bytes_of(regions));
  return std::max(at, entry.written - write_.ahead);
}

// What a device has as well is dropped there, being the cheaper to get again; what the disk has is
// not written again.
double HostMemory::push_out(Block& block, double at) {
  Entry& entry = entries_.at(&block);
  const Regions dropped = entry.in_memory & block.on_device & ~entry.on_disk,
                dirty = entry.in_memory & ~entry.on_disk & ~dropped;
  give(entry, entry.in_memory);
  block.on_cpu &= ~dropped;
  const double when = dirty != 0 ? write(entry, dirty, at) : at;
  if (entry.on_disk == 0) {
    entries_.erase(&block);
  }
  return when;
}

void HostMemory::push_out_for(std::uint64_t bytes, const Block* keep, double& at) {
  const double start = at;
  for (auto next = order_.begin(); used() + bytes > size_ && next != order_.end();) {
    Block* const block = *next++;
    if (block == keep || block == held_ || block->arriving != 0 || block->leaving != 0) {
      continue;  // in use by a transfer
    }
    at = std::max(at, push_out(*block, start));
  }
}

bool HostMemory::make_room(std::uint64_t bytes, const Block* keep, double& at) {
  if (!has_disk()) {
    return true;
  }
  if (!keeps_) {
    push_out_for(bytes, keep, at);
  }
  return used() + bytes <= size_;
}

double HostMemory::enter(Block& block, Regions regions, double at) {
  if (regions == 0) {
    return at;
  }
  const Regions fresh = regions & ~place(block).in_memory;
  const bool fits = make_room(bytes_of(fresh), &block, at);
  Entry& entry = entries_[&block];
  entry.on_disk &= ~regions;
  if (fits) {
    take(block, entry, regions);
    return at;
  }
  return write(entry, fresh, at);  // straight to the disk
}

double HostMemory::send(Block& block, Regions regions, double issued, double at) {
  const auto found = entries_.find(&block);
  if (found == entries_.end()) {
    return at;
  }
  const Entry& entry = found->second;
  renew(entry);
  const Regions absent = regions & entry.on_disk & ~entry.in_memory;
  if (absent == 0) {
    return at;
  }
  // Requests are known before their turn comes: the disk reads ahead of it, as far as the buffer
  // reaches.
  const double from = std::max({std::min(issued, at), at - read_.ahead, entry.written});
  return std::max(at, read_.run(from, bytes_of(absent)));
}

double HostMemory::use(Block& block, Regions regions, bool write_to, double at) {
  const double there = send(block, regions, at, at);
  const Place before = place(block);
  const Regions absent = regions & before.on_disk & ~before.in_memory;
  double when = there;
  const bool fits = make_room(bytes_of(absent), &block, when);
  const auto found = entries_.find(&block);
  if (found == entries_.end()) {
    return when;
  }
  Entry& entry = found->second;
  if (fits && absent != 0) {
    take(block, entry, absent);
  }
  if (write_to) {
    entry.on_disk &= ~(regions & entry.in_memory);
    if (!fits && absent != 0) {
      when = write(entry, absent, when);
    }
  }
  return when;
}

void HostMemory::leave(const Block& block, Regions regions) {
  const auto found = entries_.find(&block);
  if (found == entries_.end()) {
    return;
  }
  give(found->second, regions);
  found->second.on_disk &= ~regions;
  if ((found->second.in_memory | found->second.on_disk) == 0) {
    entries_.erase(found);
  }
}

bool HostMemory::has_room_to_pin(std::uint64_t bytes, double at) {
  if (!has_disk()) {
    return true;
  }
  push_out_for(bytes, nullptr, at);
  return used() + bytes <= size_;
}

void HostMemory::pin(std::uint64_t bytes) {
  pinned_ += bytes;
  peak_ = std::max(peak_, used());
}

}  // namespace deepum::um_model
