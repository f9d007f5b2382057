// Kernels sweep over their blocks in virtual time; what is not there faults.
#include <algorithm>

#include "state.hpp"

namespace deepum::um_model {

KernelWork Engine::State::as_kernel(Range destination, std::optional<Range> source, std::function<void()> effect) {
  Kernel kernel;
  const auto add = [&](Range range, bool write) {
    if (residency.find(range.address) != nullptr) {
      kernel.accesses.push_back({range, !write, write});
    } else {
      kernel.device_bytes += range.bytes;
    }
  };
  if (source) {
    add(*source, false);
  }
  add(destination, true);
  kernel.effect = std::move(effect);
  return {std::move(kernel), true};
}

void Engine::State::start_kernel(int device, double time) {
  DeviceState& d = devices[device];
  Compute& c = d.compute;
  if (c.busy || c.waiting.empty()) {
    return;
  }
  c.busy = true;
  c.stream = c.waiting.front();
  c.waiting.pop_front();
  const KernelWork& work = std::get<KernelWork>(streams[c.stream].operations.front().work);
  const Kernel& kernel = work.kernel;
  c.steps.clear();
  c.next = 0;
  double bytes = static_cast<double>(kernel.device_bytes);
  double remote_ns = 0;
  for (const Access& access : kernel.accesses) {
    const auto factor = static_cast<double>(access.read) + static_cast<double>(access.write);
    bytes += static_cast<double>(access.range.bytes) * factor;
    residency.each(access.range, [&](Block& block, Mask mask) {
      // Data that stays on the host by advice is read and written over the link, and does not move.
      if (block.preferred == kCpu && (block.accessed_by >> device & 1) != 0 && block.device != device) {
        remote_ns += static_cast<double>(mask_bytes(mask)) * factor / machine.h2d_gbps;
        block.on_host |= mask;
        return;
      }
      c.steps.push_back({&block, mask, access.read, access.write, static_cast<float>(std::popcount(mask))});
    });
  }
  const double peak = kernel.matrix_units ? machine.tensor_gflops : machine.fp32_gflops;
  c.duration = std::max({kernel.flops / peak, bytes / machine.memory_gbps, machine.min_kernel_ns, remote_ns});
  float total = 0;
  for (const Step& s : c.steps) {
    total += s.weight;
  }
  for (Step& s : c.steps) {
    s.weight = total > 0 ? s.weight / total : 0;
  }
  ++(work.is_copy ? d.counters.copies : d.counters.kernels);
  d.counters.compute_ns += c.duration;
  if (options.random_eviction_seed != 0 && random() % 32 == 0 && d.memory.oldest != nullptr) {
    Block* victim = d.memory.oldest;
    for (std::uint64_t skip = random() % (d.memory.chunks + 1); skip > 0 && victim->newer != nullptr; --skip) {
      victim = victim->newer;
    }
    if (!victim->in_flight) {
      evict(device, *victim);
    }
  }
  at(c.steps.empty() ? time + c.duration : time, Happening::kernel, static_cast<std::uint32_t>(device));
}

void Engine::State::touch(DeviceState& device, const Step& step) {
  Block& block = *step.block;
  const Mask used = step.mask & block.prefetched;
  if (used != 0) {
    device.counters.bytes_prefetched_used += mask_bytes(used);
    block.prefetched &= ~used;
  }
  if (block.discarded) {
    if (step.read) {
      ++device.counters.discarded_uses;
      violations.push_back({block.address, "read between its discard and its rewriting"});
    }
    if (step.write) {
      block.discarded = false;
    }
  }
  if (step.write) {
    block.on_host &= ~step.mask;  // the host's copy is stale
  }
}

void Engine::State::continue_kernel(int device, double time) {
  DeviceState& d = devices[device];
  Compute& c = d.compute;
  const double horizon = agenda.empty() ? kNever : agenda.top().time;
  while (c.next < c.steps.size()) {
    Step& s = c.steps[c.next];
    Block& block = *s.block;
    if (time > horizon) {  // something else happens first
      at(time, Happening::kernel, static_cast<std::uint32_t>(device));
      return;
    }
    if (block.valid == 0) {  // freed meanwhile
      ++c.next;
      continue;
    }
    const Mask missing = block.device == device ? s.mask & ~block.present : s.mask;
    if (missing != 0) {
      d.counters.bytes_missing += mask_bytes(missing);
      double ready = 0;
      if (block.in_flight) {
        ready = std::max(block.arrival, time);  // then looked at again
      } else {
        ready = service_faults(device, c.next, time);
        d.counters.bytes_accessed += mask_bytes(s.mask);
        if (block.device == device) {
          touch(d, s);
        } else {  // nothing could make way for it: read and written where it is, over the link
          ready += static_cast<double>(mask_bytes(s.mask)) / machine.h2d_gbps;
          block.on_host |= s.mask;
        }
        ++c.next;
      }
      d.counters.stall_ns += ready - time;
      at(c.next > 0 && !block.in_flight ? ready + c.duration * s.weight : ready, Happening::kernel, static_cast<std::uint32_t>(device));
      return;
    }
    d.counters.bytes_accessed += mask_bytes(s.mask);
    touch(d, s);
    time += c.duration * s.weight;
    ++c.next;
  }
  if (time > horizon) {
    at(time, Happening::kernel, static_cast<std::uint32_t>(device));
    return;
  }
  now = std::max(now, time);
  const Stream stream = c.stream;
  auto& work = std::get<KernelWork>(streams[stream].operations.front().work);
  const std::function<void()> effect = std::move(work.kernel.effect);
  const bool is_copy = work.is_copy;
  c.busy = false;
  if (!is_copy) {
    ++completed;
  }
  completed_at = std::max(completed_at, time);
  d.counters.gpu_time_ns = std::max(d.counters.gpu_time_ns, time);
  if (effect) {
    effect();
  }
  finish(stream, time);
  start_kernel(device, time);
}

// The step at `first` misses. Its block and the missing ones that follow within the window fault together; the driver services
// their batches one after the other. Answers when the kernel goes on.
double Engine::State::service_faults(int device, std::size_t first, double time) {
  DeviceState& d = devices[device];
  const Compute& c = d.compute;
  const std::uint64_t mine = ++ticket;
  const std::size_t window = std::clamp<std::size_t>((d.memory.capacity_bytes - d.memory.device_bytes) / kBlockBytes / 2, 1, kFaultWindow);
  const double started = std::max(time, d.fault_free_at);
  std::uint64_t copied = 0;
  double cost = 0;
  int rounds = 0, faults = 0;
  for (std::size_t i = first; i < c.steps.size() && i < first + window; ++i) {
    Block& block = *c.steps[i].block;
    const Mask present = block.device == device ? block.present : 0;
    if (block.in_flight || block.valid == 0 || (c.steps[i].mask & ~present) == 0) {
      continue;
    }
    block.pinned = mine;
    if (block.device != device) {
      if (block.device != kCpu) {
        evict(block.device, block);  // from another device, over the host
        cost += machine.eviction_ns_per_block;
      }
      const double room = make_room(device, mine);
      if (room < 0) {
        break;  // not even one victim: the rest of the window waits for its turn
      }
      cost += room;
      take_chunk(device, block);
    }
    int block_faults = 0;
    Mask bring = 0;
    if (options.density_prefetcher) {
      bring = grow(present, c.steps[i].mask & ~present, block.valid, &block_faults);
      rounds = std::max(rounds, block_faults);
    } else {
      bring = c.steps[i].mask & ~present;
      block_faults = std::popcount(bring);
    }
    faults += block_faults;
    const Mask from_host = bring & block.on_host;
    copied += mask_bytes(from_host);
    settle(device, block, bring, false);
    observed.push_back({block.address, static_cast<std::uint32_t>(block_faults), device});
  }
  // Without the density prefetcher every 4 KiB page faults by itself.
  const int batches = options.density_prefetcher ? std::max(rounds, (faults + machine.faults_per_batch - 1) / machine.faults_per_batch)
                                                 : (faults * 16 + machine.faults_per_batch - 1) / machine.faults_per_batch;
  cost += batches * (options.density_prefetcher ? machine.fault_batch_ns : machine.fault_batch_no_prefetcher_ns);
  cost += static_cast<double>(copied) * (options.density_prefetcher ? machine.fault_ns_per_byte : machine.fault_ns_per_byte_no_prefetcher);
  d.counters.faults += static_cast<std::uint64_t>(faults);
  d.counters.fault_batches += static_cast<std::uint64_t>(batches);
  d.counters.bytes_demand += copied;
  d.counters.bytes_h2d += copied;
  d.fault_free_at = started + cost;
  return d.fault_free_at;
}

}  // namespace deepum::um_model
