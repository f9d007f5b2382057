#include "faults.hpp"

#include <algorithm>

namespace deepum::um_model {
namespace {

constexpr std::size_t kMostViolations = 1000;
constexpr std::size_t kMostFaults = 1u << 16;  // kept for take_faults

}  // namespace

bool stays_remote(const Block& block, int device, Regions missing) {
  if (block.read_mostly) {
    return false;
  }
  const bool elsewhere = block.device >= 0 && (block.on_device & missing) != 0;
  if (elsewhere) {
    return false;
  }
  if (block.preferred == kCpu) {
    return true;  // no content yet: populated there
  }
  return (block.accessed_by >> device & 1) != 0 && (missing & ~block.on_cpu) == 0;
}

// Counts a launch once, and once more if it is surely an error.
void FaultService::check_lost(int device, const Block& block, const Sweep& sweep,
                              std::uint64_t launch) {
  const Piece& piece = sweep.piece();
  if (launch == 0 || !piece.read || piece.written_first || violated_launch_ == launch) {
    return;
  }
  Counters& counters = residency_.counters(device);
  if (doubted_launch_ != launch) {
    doubted_launch_ = launch;
    ++counters.discarded_uses;
  }
  std::uint64_t base = 0;
  if (!residency_.losses.sure(block, piece, blocks_.find(sweep.low(), &base))) {
    return;
  }
  violated_launch_ = launch;
  ++counters.discarded_uses_sure;
  if (violations_.size() < kMostViolations) {
    violations_.push_back({sweep.low(), "memory that was discarded and not written since"});
  }
}

void FaultService::observe(int device, const Sweep& sweep, std::uint32_t faults, double start,
                           double end) {
  if (faults_.size() == kMostFaults) {
    ++dropped_;
    return;
  }
  faults_.push_back({sweep.block_address(), faults, device, sweep.piece().write, start, end});
}

void FaultService::tell(deepum_activity_kind kind, int device, double start, double end,
                        std::uint64_t bytes, std::uint32_t count) {
  if (residency_.activities != nullptr) {
    const deepum_activity made =
        activity(kind, device, start, end, bytes, count, residency_.resident_bytes(device));
    if (kind == DEEPUM_ACTIVITY_FAULT) {
      residency_.activities->add(made);
    } else {
      residency_.activities->move(made);
    }
  }
}

FaultService::Outcome FaultService::access(int device, double now, const Sweep& sweep,
                                           std::uint64_t launch, double step, bool may_wait) {
  Block* const found = sweep.block();
  if (found == nullptr || found->mappings == 0) {
    return {Outcome::no, remote(device, now, sweep, step)};
  }
  Block& block = *found;
  Counters& counters = residency_.counters(device);
  const Piece& piece = sweep.piece();
  const Regions regions = sweep.regions();
  if (!may_wait) {
    residency_.settle(block);
  }
  const Regions missing = regions & ~(block.device == device ? block.on_device : 0);
  const bool moving = block.arriving != 0 || block.leaving != 0;
  const bool from_afar = missing != 0 && !moving && stays_remote(block, device, missing);
  double stall = 0;
  if (missing == 0) {
    note(device, counters, block, regions, 0, launch);
    if (piece.write && (block.on_cpu & regions) != 0) {
      // A write collapses a duplicate: one fault, nothing moved.
      residency_.off_host(block, regions);
      ++counters.faults;
      ++counters.fault_batches;
      stall = options_.density_prefetcher ? residency_.machine().fault_batch_ns
                                          : residency_.machine().fault_batch_no_prefetcher_ns;
      observe(device, sweep, 1, now, now + stall);
      tell(DEEPUM_ACTIVITY_FAULT, device, now, now + stall, 0, 1);
    }
  } else if (moving || (!from_afar && may_wait && awaits_prefetch(block, device))) {
    note(device, counters, block, regions, missing, launch);
    return {Outcome::for_block, 0};
  } else if (from_afar) {
    note(device, counters, block, regions, 0, launch);
    const double there =
        residency_.use_on_host(block, missing & ~block.on_device, piece.write, now);
    if (!block.remote_mapped && (block.accessed_by >> device & 1) == 0) {
      block.remote_mapped = true;  // the first access faults to have the mapping made
      ++counters.faults;
      ++counters.fault_batches;
      stall = residency_.machine().fault_batch_ns;
      observe(device, sweep, 1, now, now + stall);
      tell(DEEPUM_ACTIVITY_FAULT, device, now, now + stall, 0, 1);
    }
    stall += there - now + remote(device, there, sweep, step);
  } else {
    const Outcome outcome = service(device, now, sweep, launch, may_wait);
    if (outcome.wait != Outcome::no) {
      return outcome;
    }
    stall = outcome.stall;
  }
  if ((block.lost & regions) != 0) {
    check_lost(device, block, sweep, launch);
  }
  if (piece.write) {
    residency_.rewritten(block, regions);
  }
  return {Outcome::no, stall};
}

// Faults of a sweep come in order; the driver takes up to faults_per_batch at once
// (uvm_perf_fault_batch_count), so the blocks that follow share the batch until one needs no
// migration.
FaultService::Outcome FaultService::service(int device, double now, const Sweep& from,
                                            std::uint64_t launch, bool may_wait) {
  const Machine& machine = residency_.machine();
  Counters& counters = residency_.counters(device);
  ++batch_;
  const double base =
      options_.density_prefetcher ? machine.fault_batch_ns : machine.fault_batch_no_prefetcher_ns;
  const double per_byte = options_.density_prefetcher ? machine.fault_ns_per_byte
                                                      : machine.fault_ns_per_byte_no_prefetcher;
  int faults = 0;
  std::uint64_t bytes = 0;
  Evicted evicted;
  double disk_ns = 0;  // spent waiting for it
  bool first = true;
  const std::size_t observed = faults_.size();
  for (Sweep sweep = from; !sweep.done(); sweep.next()) {
    Block* const block = sweep.block();
    if (block == nullptr || block->mappings == 0) {
      break;
    }
    const bool here = block->device == device;
    const Regions present = here ? block->on_device : 0;
    const Regions missing = sweep.regions() & ~present;
    if (!first) {
      if (missing == 0 || block->arriving != 0 || block->leaving != 0) {
        break;
      }
      if (awaits_prefetch(*block, device) || stays_remote(*block, device, missing)) {
        break;
      }
    }
    Grown grown = grow_faults(present, sweep.regions(), options_.density_prefetcher);
    if (!first && faults + grown.faults > machine.faults_per_batch) {
      break;
    }
    if (!residency_.take_chunk(device, *block, now, batch_, evicted)) {
      if (!first) {
        break;
      }
      if (may_wait && residency_.capacity(device) != 0) {
        return {Outcome::for_space, 0};  // all of it is in transfer
      }
      // Not one chunk of managed memory on the device: everything goes over the link.
      const double there = residency_.use_on_host(*block, missing, sweep.piece().write, now);
      note(device, counters, *block, sweep.regions(), 0, launch);
      return {Outcome::no, base + (there - now) + remote(device, there, from, 0)};
    }
    if (block->preferred == device) {
      grown.moved |= ~(present | block->on_cpu);  // a first touch there populates the whole block
    }
    note(device, counters, *block, sweep.regions(), missing, launch);
    if (HostMemory* const host = residency_.host()) {
      // The batch's reads are asked for at once; what a block brings is copied once it was read.
      const double copied =
          now + base + per_byte * static_cast<double>(bytes) + evicted.ns + disk_ns;
      disk_ns += host->send(*block, grown.moved & block->on_cpu, now, copied) - copied;
    }
    bytes += bytes_of(grown.moved & block->on_cpu);
    block->batch = batch_;
    residency_.place(*block, grown.moved, block->read_mostly && !sweep.piece().write);
    faults += grown.faults;
    observe(device, sweep, static_cast<std::uint32_t>(grown.faults), now, now);
    first = false;
  }
  counters.faults += static_cast<std::uint64_t>(faults);
  ++counters.fault_batches;
  counters.bytes_h2d += bytes;
  counters.bytes_demand += bytes;
  Link& link = residency_.to_device(device);
  link.occupy(now, link.time(static_cast<double>(bytes)));
  const double stall = base + per_byte * static_cast<double>(bytes) + evicted.ns + disk_ns;
  for (std::size_t i = observed; i < faults_.size(); ++i) {
    faults_[i].end = now + stall;
  }
  tell(DEEPUM_ACTIVITY_FAULT, device, now, now + stall, bytes, static_cast<std::uint32_t>(faults));
  return {Outcome::no, stall};
}

double FaultService::remote(int device, double now, const Sweep& sweep, double step) {
  Counters& counters = residency_.counters(device);
  double ns = 0;
  if (sweep.piece().read) {
    Link& link = residency_.to_device(device);
    const double read = link.time(static_cast<double>(sweep.bytes()));
    link.occupy(now, read);
    counters.bytes_h2d += sweep.bytes();
    tell(DEEPUM_ACTIVITY_REMOTE_IN, device, now, now + read, sweep.bytes(), 1);
    ns = std::max(ns, read);
  }
  if (sweep.piece().write) {
    Link& link = residency_.to_cpu(device);
    const double write = link.time(static_cast<double>(sweep.bytes()));
    link.occupy(now, write);
    counters.bytes_d2h += sweep.bytes();
    tell(DEEPUM_ACTIVITY_REMOTE_OUT, device, now, now + write, sweep.bytes(), 1);
    ns = std::max(ns, write);
  }
  return std::max(ns - step, 0.0);
}

double FaultService::touch_all(int device, double now, Range range, bool write) {
  const Access access_of_all{range, !write, write};
  blocks_.split({&access_of_all, 1}, pieces_, 0);
  double ns = 0;
  for (Sweep sweep(blocks_, pieces_); !sweep.done(); sweep.next()) {
    Block* const block = sweep.block();
    if (block == nullptr || block->mappings == 0) {
      continue;
    }
    residency_.settle(*block);
    const Regions missing = sweep.regions() & ~(block->device == device ? block->on_device : 0);
    if (missing != 0 && stays_remote(*block, device, missing)) {
      // The copy itself goes to the CPU's pages.
      const double at = now + ns;
      ns += residency_.use_on_host(*block, missing & ~block->on_device, write, at) - at;
      if (write) {
        residency_.rewritten(*block, sweep.regions());
      }
      continue;
    }
    ns += access(device, now + ns, sweep, 0, 0, false).stall;
  }
  return ns;
}

}  // namespace deepum::um_model
