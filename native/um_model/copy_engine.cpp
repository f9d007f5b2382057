#include "copy_engine.hpp"

#include <algorithm>

namespace deepum::um_model {
namespace {

// A prefetch counts from the moment it is begun: a kernel that needs one of its blocks waits for it
// instead of faulting.
void count_queued(const BlockTable& blocks, const Migration& migration) {
  for (const Range& range : migration.ranges) {
    each_block(blocks, range, true, [&](Block& block, Regions, std::uint64_t) {
      ++block.queued;
      block.queued_to = static_cast<std::int16_t>(migration.location);
    });
  }
}

void uncount_queued(Block& block) {
  if (block.queued > 0) {
    --block.queued;
  }
}

}  // namespace

void CopyEngine::submit(Op& op) {
  if (const Migration* const migration = std::get_if<Migration>(&op.work);
      migration != nullptr && to_device_) {
    count_queued(blocks_, *migration);
  }
  queue_.push_back({&op, timeline_.now()});
  if (current_ == nullptr && !running_) {
    expect(timeline_.now());
  }
}

void CopyEngine::settled(const Block& block) {
  if (held_.block == &block && !transferring_) {
    expect(timeline_.now());
  }
}

void CopyEngine::transfer(double now, double ns, double wait) {
  transferring_ = true;
  link().active = true;
  const double start = earliest(now);
  link().idle_from = start;
  link().idle_until = start + wait;
  expect(start + ns);
  if (residency_.activities != nullptr) {
    tell(start + wait, start + ns);
  }
}

// At its start, with the end as far as it is known: the counters have it then, too.
void CopyEngine::tell(double start, double end) const {
  const deepum_activity made =
      activity(kind(), device_, start, end, bytes_, 1, residency_.resident_bytes(device_));
  if (std::holds_alternative<BulkCopy>(current_->work)) {
    residency_.activities->add(made);
  } else {
    residency_.activities->move(made);
  }
}

deepum_activity_kind CopyEngine::kind() const {
  if (std::holds_alternative<BulkCopy>(current_->work)) {
    return to_device_ ? DEEPUM_ACTIVITY_COPY_IN : DEEPUM_ACTIVITY_COPY_OUT;
  }
  return to_device_ ? DEEPUM_ACTIVITY_PREFETCH : DEEPUM_ACTIVITY_EVICT;
}

void CopyEngine::wake(double now, std::uint64_t token) {
  if (token != expected_) {
    return;
  }
  if (transferring_) {
    if (link().debt > 0) {  // the driver took that much of the link meanwhile
      const double later = now + link().debt;
      link().debt = 0;
      expect(later);
      return;
    }
    transferring_ = false;
    link().active = false;
    if (moving_ != nullptr && moving_->generation == moving_generation_) {
      residency_.settle(*moving_);
    }
    moving_ = nullptr;
    if (residency_.activities != nullptr) {
      residency_.activities->ended(kind(), device_, now, residency_.resident_bytes(device_));
    }
  }
  run(now);
}

void CopyEngine::begin(const Queued& next) {
  current_ = next.op;
  since_ = next.since;
  latency_paid_ = false;
  range_ = 0;
  address_ = 0;
  held_ = {};
}

void CopyEngine::run(double now) {
  running_ = true;
  for (;;) {
    if (current_ == nullptr) {
      if (queue_.empty()) {
        break;
      }
      begin(queue_.front());
      queue_.pop_front();
      if (const BulkCopy* const copy = std::get_if<BulkCopy>(&current_->work)) {
        transfer(now, bulk_ns(*copy, now));
        break;
      }
    }
    const Migration* const migration = std::get_if<Migration>(&current_->work);
    bool more = false;
    if (migration != nullptr) {
      more = held_.block != nullptr || next_target(*migration, held_);
    }
    if (!more) {
      Op& op = *current_;
      current_ = nullptr;
      complete(op, now);
      continue;
    }
    wait_ = 0;
    const double ns = to_device_ ? begin_arrival(held_, now) : begin_leaving(held_, now);
    if (ns < 0) {
      break;
    }
    if (to_device_) {
      uncount_queued(*held_.block);
    }
    Block& block = *held_.block;
    held_ = {};
    if (ns > 0) {
      transfer(now, ns, wait_);
      break;
    }
    if (moving_ != nullptr) {
      moving_ = nullptr;
      residency_.settle(block);
    } else if (to_device_ && residency_.on_settled) {
      residency_.on_settled(block);
    }
  }
  running_ = false;
}

bool CopyEngine::next_target(const Migration& migration, Target& target) {
  for (; range_ < migration.ranges.size(); ++range_, address_ = 0) {
    const Range& range = migration.ranges[range_];
    const std::uint64_t high = range.address + range.bytes;
    if (address_ == 0) {
      address_ = range.address;
    }
    while (address_ < high) {
      const std::uint64_t number = address_ / kBlockBytes, start = number * kBlockBytes;
      const std::uint64_t end = std::min(high, start + kBlockBytes);
      const std::uint64_t low = address_;
      address_ = end;
      Block* const block = blocks_.block(number);
      if (block == nullptr) {
        continue;
      }
      target = {block, regions_touched(low - start, end - start)};
      return true;
    }
  }
  return false;
}

double CopyEngine::transfer_ns(std::uint64_t bytes) {
  const Link& other = to_device_ ? residency_.to_cpu(device_) : residency_.to_device(device_);
  return link().time(static_cast<double>(bytes)) *
         (other.active ? residency_.machine().both_ways : 1);
}

double CopyEngine::begin_arrival(Target target, double now) {
  Block& block = *target.block;
  if (block.mappings == 0) {
    return 0;
  }
  if (block.arriving != 0 || block.leaving != 0) {
    return -1;
  }
  const bool here = block.device == device_;
  if (here) {
    residency_.undiscard(block, target.regions);
  }
  const Regions needed = target.regions & ~(here ? block.on_device : 0);
  if (needed == 0) {
    residency_.renew(block);
    return 0;
  }
  Evicted evicted;
  if (!residency_.take_chunk(device_, block, now, 0, evicted)) {
    return 0;
  }
  const Regions content = needed & block.on_cpu;
  bytes_ = bytes_of(content);
  Counters& counters = residency_.counters(device_);
  counters.bytes_h2d += bytes_of(content);
  counters.bytes_prefetched += bytes_of(content);
  residency_.begin_arrival(block, needed);
  block.prefetched |= content;
  moving_ = &block;
  moving_generation_ = block.generation;
  if (HostMemory* const host = residency_.host()) {
    const double at = earliest(now) + evicted.ns;
    wait_ = host->send(block, content, since_, at) - at;
  }
  double ns = evicted.ns + wait_ + residency_.machine().block_ns + transfer_ns(bytes_of(content));
  if (content != 0 && !latency_paid_) {
    ns += residency_.machine().copy_latency_ns;
    latency_paid_ = true;
  }
  return ns;
}

double CopyEngine::begin_leaving(Target target, double now) {
  Block& block = *target.block;
  if (block.mappings == 0 || block.device < 0) {
    return 0;
  }
  if (block.arriving != 0 || block.leaving != 0) {
    return -1;
  }
  Counters& counters = residency_.counters(device_);
  Regions const copied = target.regions & block.on_device & ~block.discarded & ~block.on_cpu;
  HostMemory* const host = copied != 0 ? residency_.host() : nullptr;
  if (host != nullptr) {
    wait_ = host->enter(block, copied, earliest(now)) - earliest(now);
  }
  if (block.read_mostly) {
    block.on_cpu |= copied;  // a duplicate: the device keeps its own
  } else {
    const Regions dropped = target.regions & block.on_device & ~copied;
    const std::uint64_t discarded = bytes_of(dropped & block.discarded);
    counters.bytes_discarded += discarded;
    if (dropped != 0) {
      residency_.drop(block, dropped);
    }
    if (residency_.activities != nullptr && discarded != 0) {
      residency_.activities->move(activity(DEEPUM_ACTIVITY_DISCARD, device_, now, now, discarded, 1,
                                           residency_.resident_bytes(device_)));
    }
    if (copied != 0) {
      residency_.begin_leaving(block, copied);
      moving_ = &block;
      moving_generation_ = block.generation;
    }
  }
  if (copied == 0) {
    return 0;
  }
  bytes_ = bytes_of(copied);
  counters.bytes_d2h += bytes_;
  counters.bytes_prefetched_out += bytes_of(copied);
  double ns = wait_ + residency_.machine().block_ns + transfer_ns(bytes_of(copied));
  if (!latency_paid_) {
    ns += residency_.machine().copy_latency_ns;
    latency_paid_ = true;
  }
  return ns;
}

double CopyEngine::bulk_ns(const BulkCopy& copy, double now) {
  const Machine& machine = residency_.machine();
  Counters& counters = residency_.counters(device_);
  ++counters.copies;
  double ns = machine.copy_latency_ns;
  double over_link = static_cast<double>(copy.bytes);
  if (to_device_) {
    double stalls = 0;
    for (const Range& row : copy.managed) {
      stalls += faults_.touch_all(device_, now + stalls, row, true);
    }
    ns += stalls;
    counters.bytes_h2d += copy.bytes;
    bytes_ = copy.bytes;
  } else {
    // What the CPU has already does not come from the device.
    double from_cpu = 0;
    for (const Range& row : copy.managed) {
      each_block(blocks_, row, true, [&](Block& block, Regions regions, std::uint64_t number) {
        residency_.settle(block);
        const Regions absent = regions & ~block.on_device;
        if (absent == 0) {
          return;
        }
        const std::uint64_t low = std::max(row.address, number * kBlockBytes);
        const std::uint64_t high = std::min(row.address + row.bytes, (number + 1) * kBlockBytes);
        from_cpu +=
            static_cast<double>(high - low) * std::popcount(absent) / std::popcount(regions);
        const double at = now + ns;
        ns += residency_.use_on_host(block, absent & block.on_cpu, false, at) - at;
      });
    }
    over_link = std::max(over_link - from_cpu, 0.0);
    ns += from_cpu / machine.host_gbps;
    bytes_ = static_cast<std::uint64_t>(over_link);
    counters.bytes_d2h += bytes_;
  }
  return ns + over_link / link().gbps;
}

}  // namespace deepum::um_model
