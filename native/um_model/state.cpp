#include "state.hpp"

#include <algorithm>
#include <utility>

namespace deepum::um_model {

Engine::State::State(const Machine& of, const Options& wanted)
    : machine(of),
      options(wanted),
      residency(machine, options),
      faults(blocks, residency, options),
      advice(timeline, blocks, residency),
      alarms(timeline, clocks) {
  const int devices = residency.devices();
  for (int device = 0; device < devices; ++device) {
    compute.push_back(std::make_unique<ComputeEngine>(device, machine, options, timeline, blocks,
                                                      residency, faults));
    to_device.push_back(
        std::make_unique<CopyEngine>(device, true, timeline, blocks, residency, faults));
    to_cpu.push_back(
        std::make_unique<CopyEngine>(device, false, timeline, blocks, residency, faults));
  }
  device_managed.resize(static_cast<std::size_t>(devices));
  device_peak_managed.resize(static_cast<std::size_t>(devices));
  device_last_work.resize(static_cast<std::size_t>(devices));
  residency.on_settled = [this](const Block& block) {
    for (const auto& engine : compute) {
      engine->settled(block);
    }
    for (const auto& engine : to_device) {
      engine->settled(block);
    }
    for (const auto& engine : to_cpu) {
      engine->settled(block);
    }
  };
}

// --- Hosts: a helper's call starts no earlier than its decision could have been made.

double Engine::State::now(Host host) const {
  if (host <= kServer || host >= clocks.size()) {
    return clocks[host == kServer ? kServer : kProgram];
  }
  if (host < threads.size() && threads[host]) {
    return clocks[host];
  }
  return std::max(clocks[host], last_program_call + machine.decision_latency_ns);
}

void Engine::State::move_clock(Host host, double time) {
  double& clock = clocks[host < clocks.size() ? host : kProgram];
  clock = std::max(clock, time);
}

void Engine::State::spend(Host host, double ns) { move_clock(host, now(host) + std::max(ns, 0.0)); }

void Alarms::set(Host thread, double time, std::function<void()> action) {
  pending_.emplace(++tokens_, Alarm{thread, std::move(action)});
  timeline_.at(time, *this, tokens_);
}

void Alarms::wake(double now, std::uint64_t token) {
  const auto found = pending_.find(token);
  double& clock = clocks_[found->second.thread];
  if (clock > now) {  // its last calls are not over
    timeline_.at(clock, *this, token);
    return;
  }
  clock = now;
  const std::function<void()> action = std::move(found->second.action);
  pending_.erase(found);
  action();
}

// --- Progress

bool Engine::State::poll_holds(double now) {
  bool released = false;
  for (std::size_t i = 0; i < holds.size();) {
    Op* const op = holds[i];
    if (std::get<Hold>(op->work).ready()) {
      holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(i));
      complete(*op, now);
      released = true;
    } else {
      ++i;
    }
  }
  return released;
}

bool Engine::State::step(double horizon) {
  if (timeline.step(horizon)) {
    if (holds_changed) {
      holds_changed = false;
      poll_holds(timeline.now());
    }
    return true;
  }
  return !holds.empty() && poll_holds(timeline.now());
}

void Engine::State::enqueue(Host host, Stream stream, decltype(Op::work) work) {
  queue(stream).push(std::max(now(host), timeline.now()), std::move(work));
}

bool Engine::State::begin(Op& op, double now) {
  struct Begin {
    State& state;
    Op& op;
    double now;
    std::size_t device() const { return static_cast<std::size_t>(op.stream->device()); }
    bool later(double ns) const {
      state.finish_at(now + ns, op);
      return false;
    }
    bool operator()(KernelWork&) const {
      state.compute[device()]->submit(op);
      return false;
    }
    bool operator()(BulkCopy& copy) const {
      (copy.to_device ? state.to_device : state.to_cpu)[device()]->submit(op);
      return false;
    }
    bool operator()(HostCopy& copy) const { return later(copy.ns); }
    bool operator()(Migration& migration) const {
      if (migration.discard != 0) {
        state.discard(migration.ranges, migration.discard);
      }
      if (migration.discard != 0 && migration.location == kCpu &&
          state.drop_discarded(migration.ranges)) {
        // No copy engine takes part.
        return later(state.machine.copy_latency_ns + state.handling_ns(migration.ranges));
      }
      if (migration.location == kCpu) {
        state.to_cpu[device()]->submit(op);
      } else {
        state.to_device[static_cast<std::size_t>(migration.location)]->submit(op);
      }
      return false;
    }
    bool operator()(Discard& work) const {
      state.discard(work.ranges, work.number);
      const double ns = state.handling_ns(work.ranges);
      return ns > 0 ? later(ns) : true;
    }
    bool operator()(Record& record) const {
      record.recording->done = true;
      record.recording->time = now;
      for (Op* const waiter : std::exchange(record.recording->waiters, {})) {
        state.finish_at(now, *waiter);
      }
      return true;
    }
    bool operator()(Wait& wait) const {
      if (wait.recording->done) {
        return true;
      }
      wait.recording->waiters.push_back(&op);
      return false;
    }
    bool operator()(HostFunction&) const { return later(state.machine.host_function_ns); }
    bool operator()(Service& service) const {
      state.move_clock(kServer, now + state.machine.host_function_ns);
      service.function();
      return later(state.clocks[kServer] - now);
    }
    bool operator()(WaitValue& wait) const {
      if (wait.word->value >= wait.least) {
        return later(state.machine.value_wait_ns);
      }
      wait.word->waiters.emplace_back(wait.least, &op);
      return false;
    }
    bool operator()(WriteValue& write) const {
      ValueWord& word = *write.word;
      word.value = std::max(word.value, write.value);
      std::erase_if(word.waiters, [&](const auto& waiter) {
        const bool there = waiter.first <= word.value;
        if (there) {
          state.finish_at(now + state.machine.value_wait_ns, *waiter.second);
        }
        return there;
      });
      return true;
    }
    bool operator()(Hold& hold) const {
      if (hold.ready()) {
        return true;
      }
      state.holds.push_back(&op);
      state.interrupted = true;
      return false;
    }
  };
  return std::visit(Begin{*this, op, now}, op.work);
}

void Engine::State::wake(double now, std::uint64_t token) {
  complete(*reinterpret_cast<Op*>(static_cast<std::uintptr_t>(token)), now);
}

void Engine::State::ended(Op& op, double now) {
  std::function<void()>* effect = nullptr;
  bool work = true;
  if (auto* const kernel = std::get_if<KernelWork>(&op.work)) {
    effect = &kernel->kernel.effect;
    if (kernel->counted) {
      --launches_outstanding;
    } else {
      ++residency.counters(op.stream->device()).copies;
    }
  } else if (auto* const copy = std::get_if<BulkCopy>(&op.work)) {
    effect = &copy->effect;
  } else if (auto* const host_copy = std::get_if<HostCopy>(&op.work)) {
    effect = &host_copy->effect;
  } else if (auto* const function = std::get_if<HostFunction>(&op.work)) {
    effect = &function->function;
  } else if (!std::holds_alternative<Migration>(op.work)) {
    work = false;
  }
  if (work) {
    last_work = std::max(last_work, now);
    double& last = device_last_work[static_cast<std::size_t>(op.stream->device())];
    last = std::max(last, now);
  }
  if (effect != nullptr && *effect) {
    (*effect)();
    holds_changed = !holds.empty();
  }
}

// Whole 64 KiB regions only: a discard never takes what it was not asked for.
void Engine::State::discard(std::span<const Range> ranges, std::uint64_t which) {
  for (const Range& range : ranges) {
    Range dropped{0, 0};
    const auto flush = [&] {
      if (dropped.bytes != 0 && poison) {
        poison(dropped);
      }
    };
    each_block(blocks, range, false, [&](Block& block, Regions regions, std::uint64_t number) {
      residency.discard(block, regions, which);
      const std::uint64_t low =
          number * kBlockBytes +
          static_cast<std::uint64_t>(std::countr_zero(regions)) * kRegionBytes;
      if (dropped.address + dropped.bytes != low) {
        flush();
        dropped = {low, 0};
      }
      dropped.bytes += bytes_of(regions);
    });
    flush();
  }
}

double Engine::State::handling_ns(std::span<const Range> ranges) {
  double count = 0;
  for (const Range& range : ranges) {
    each_block(blocks, range, true, [&](const Block&, Regions, std::uint64_t) { ++count; });
  }
  return count * machine.block_ns;
}

bool Engine::State::drop_discarded(std::span<const Range> ranges) {
  bool all = true;
  std::uint64_t bytes = 0;
  std::uint32_t count = 0;
  int device = 0;
  for (const Range& range : ranges) {
    each_block(blocks, range, true, [&](Block& block, Regions regions, std::uint64_t) {
      const Regions dropped = regions & block.on_device & block.discarded;
      if (dropped != 0) {
        residency.counters(block.device).bytes_discarded += bytes_of(dropped);
        bytes += bytes_of(dropped);
        ++count;
        device = block.device;
        residency.drop(block, dropped);
        if (residency.on_settled) {
          residency.on_settled(block);
        }
      }
      all = all && (regions & (block.on_device | block.arriving)) == 0;
      if (machine.discards == Discards::kDriver) {
        // uvm_va_block_make_resident of 580.95: the pages are populated on the host, zeroed, and
        // are not discarded any more.
        residency.to_host(block, regions & ~block.on_device, timeline.now());
      }
    });
  }
  if (activities != nullptr && bytes != 0) {
    const double now = timeline.now();
    activities->add(activity(DEEPUM_ACTIVITY_DISCARD, device, now, now, bytes, count,
                             residency.resident_bytes(device)));
  }
  return all;
}

void Engine::State::recycle_streams() {
  std::erase_if(draining, [this](Stream stream) {
    if (!streams[stream]->forgotten()) {
      return false;
    }
    free_streams.push_back(stream);
    return true;
  });
}

}  // namespace deepum::um_model
