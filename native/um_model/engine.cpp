// The engine's face: host clocks, memory, enqueuing, progress.
#include "engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "state.hpp"

namespace deepum::um_model {

Engine::Engine(const Machine& machine, const Options& options) : state_(std::make_unique<State>(machine, options)) {}
Engine::~Engine() = default;

Host Engine::add_helper() {
  state_->clocks.push_back(state_->clocks[kProgram]);
  return static_cast<Host>(state_->clocks.size() - 1);
}

double Engine::now(Host host) const { return state_->clocks[host]; }
void Engine::spend(Host host, double ns) { state_->clocks[host] += ns; }
void Engine::program_call() { state_->program_mark = state_->clocks[kProgram]; }

namespace {
// A helper's call starts no earlier than the latest program call could have caused it.
void begin_call(std::vector<double>& clocks, double mark, double latency, Host host) {
  if (host != kProgram) {
    clocks[host] = std::max(clocks[host], mark + latency);
  }
}
}  // namespace

void Engine::map_managed(Range range, int device) {
  state_->residency.add(range, device);
  state_->managed_bytes += range.bytes;
  state_->peak_managed_bytes = std::max(state_->peak_managed_bytes, state_->managed_bytes);
}

void Engine::map_device(Range range, int device) {
  DeviceState& d = state_->devices[device];
  d.memory.device_bytes += range.bytes;
  state_->device_ranges[range.address] = {range, device};
  while (d.memory.device_bytes + d.memory.resident_bytes() > d.memory.capacity_bytes && d.memory.oldest != nullptr) {
    Block* victim = d.memory.oldest;
    while (victim != nullptr && victim->in_flight) {
      victim = victim->newer;
    }
    if (victim == nullptr) {
      return;
    }
    state_->evict(device, *victim);
  }
}

void Engine::unmap(std::uint64_t address) {
  if (const auto plain = state_->device_ranges.find(address); plain != state_->device_ranges.end()) {
    state_->devices[plain->second.second].memory.device_bytes -= plain->second.first.bytes;
    state_->device_ranges.erase(plain);
    return;
  }
  if (std::unique_ptr<Region> region = state_->residency.remove(address); region != nullptr) {
    state_->managed_bytes -= region->range.bytes;
    state_->forget_region(std::move(region));
  }
}

std::uint64_t Engine::free_bytes(int device) const {
  const Memory& memory = state_->devices[device].memory;
  const std::uint64_t used = memory.device_bytes + memory.resident_bytes();
  return used < memory.capacity_bytes ? memory.capacity_bytes - used : 0;
}

bool Engine::is_resident(int device, std::uint64_t address) const {
  bool resident = false;
  state_->residency.each({address, 1}, [&](const Block& block, Mask mask) {
    resident = block.device == device && (block.present & mask) != 0 && !block.in_flight;
  });
  return resident;
}

Stream Engine::add_stream(int device) {
  for (Stream i = 0; i < state_->streams.size(); ++i) {
    StreamState& old = state_->streams[i];
    if (old.removed && !old.scheduled && old.operations.empty()) {
      const double last_end = old.last_end;
      old = {};
      old.device = device;
      old.last_end = std::min(last_end, state_->clocks[kProgram]);
      return i;
    }
  }
  state_->streams.emplace_back();
  state_->streams.back().device = device;
  return static_cast<Stream>(state_->streams.size() - 1);
}

void Engine::remove_stream(Stream stream) { state_->streams[stream].removed = true; }

Event Engine::add_event() {
  for (Event i = 0; i < state_->events.size(); ++i) {
    if (state_->events[i] == nullptr) {
      state_->events[i] = std::make_shared<Marker>(Marker{-1.0, {}});
      return i;
    }
  }
  state_->events.push_back(std::make_shared<Marker>(Marker{-1.0, {}}));  // never recorded: complete
  return static_cast<Event>(state_->events.size() - 1);
}

void Engine::remove_event(Event event) { state_->events[event] = nullptr; }

void Engine::launch(Host host, Stream stream, Kernel kernel) {
  State& s = *state_;
  begin_call(s.clocks, s.program_mark, s.machine.decision_latency_ns, host);
  s.clocks[host] += s.machine.launch_ns;
  s.run_to(s.clocks[kProgram]);
  const auto queue = static_cast<std::uint64_t>(s.machine.launch_queue);
  if (s.launched - s.completed >= queue) {
    s.run_until([&] { return s.launched - s.completed < queue; });
    s.clocks[host] = std::max(s.clocks[host], s.completed_at);
  }
  ++s.launched;
  s.enqueue(host, stream, KernelWork{std::move(kernel)});
}

void Engine::copy(Host host, Stream stream, Range destination, Range source, int kind, std::function<void()> effect) {
  State& s = *state_;
  begin_call(s.clocks, s.program_mark, s.machine.decision_latency_ns, host);
  s.clocks[host] += s.machine.launch_ns;
  if (kind == 3) {
    s.enqueue(host, stream, s.as_kernel(destination, source, std::move(effect)));
    return;
  }
  const Range device_side = kind == 1 ? destination : kind == 2 ? source : Range{0, 0};
  const bool managed = s.residency.find(device_side.address) != nullptr;
  CopyWork work{managed ? device_side : Range{device_side.address, 0}, destination.bytes, kind == 2 ? kOut : kIn, kind == 0,
                std::move(effect)};
  s.enqueue(host, stream, std::move(work));
}

void Engine::fill(Host host, Stream stream, Range destination, std::function<void()> effect) {
  begin_call(state_->clocks, state_->program_mark, state_->machine.decision_latency_ns, host);
  state_->clocks[host] += state_->machine.launch_ns;
  state_->enqueue(host, stream, state_->as_kernel(destination, std::nullopt, std::move(effect)));
}

void Engine::prefetch(Host host, Stream stream, std::span<const Range> ranges, int location) {
  begin_call(state_->clocks, state_->program_mark, state_->machine.decision_latency_ns, host);
  state_->clocks[host] += state_->machine.migration_call_ns;
  state_->enqueue(host, stream, MoveWork{{ranges.begin(), ranges.end()}, location});
}

void Engine::discard(Host host, Stream stream, std::span<const Range> ranges, int then_location, bool then_prefetch) {
  begin_call(state_->clocks, state_->program_mark, state_->machine.decision_latency_ns, host);
  state_->clocks[host] += state_->machine.migration_call_ns;
  state_->enqueue(host, stream, DiscardWork{{ranges.begin(), ranges.end()}, then_location, then_prefetch});
}

// Advice takes effect at the call, not in stream order.
void Engine::advise(Host host, std::span<const Range> ranges, Advice advice, int location) {
  State& s = *state_;
  begin_call(s.clocks, s.program_mark, s.machine.decision_latency_ns, host);
  s.clocks[host] += s.machine.migration_call_ns;
  s.run_to(s.clocks[kProgram]);
  for (const Range& range : ranges) {
    s.residency.each(range, [&](Block& block, Mask) {
      switch (advice) {
        case Advice::read_mostly:
          block.read_mostly = true;
          break;
        case Advice::unset_read_mostly:
          block.read_mostly = false;
          // One copy is kept: where the block is preferred, else on the device.
          if (block.device != kCpu && !block.in_flight && (block.present & block.on_host) != 0) {
            if (block.preferred == kCpu && (block.present & ~block.on_host) == 0) {
              s.release(block.device, block);
            } else {
              block.on_host &= ~block.present;
            }
          }
          break;
        case Advice::preferred_location:
          block.preferred = location;
          break;
        case Advice::unset_preferred_location:
          block.preferred = -2;
          break;
        case Advice::accessed_by:
          block.accessed_by |= location >= 0 ? 1u << location : 0;
          break;
        case Advice::unset_accessed_by:
          block.accessed_by &= location >= 0 ? ~(1u << location) : ~0u;
          break;
      }
    });
  }
}

void Engine::record(Host host, Event event, Stream stream) {
  begin_call(state_->clocks, state_->program_mark, state_->machine.decision_latency_ns, host);
  auto marker = std::make_shared<Marker>();
  state_->events[event] = marker;
  state_->enqueue(host, stream, RecordWork{std::move(marker)});
}

void Engine::wait(Host host, Stream stream, Event event) {
  begin_call(state_->clocks, state_->program_mark, state_->machine.decision_latency_ns, host);
  state_->enqueue(host, stream, WaitWork{state_->events[event]});
}

void Engine::call(Host host, Stream stream, std::function<void()> function) {
  state_->enqueue(host, stream, CallWork{std::move(function)});
}
void Engine::wait_until(Host host, Stream stream, std::function<bool()> ready) {
  state_->enqueue(host, stream, HoldWork{std::move(ready)});
}
void Engine::on_discard(std::function<void(Range)> poison) { state_->poison = std::move(poison); }

void Engine::cpu_access(Host host, Range range, bool write) {
  State& s = *state_;
  s.run_to(s.clocks[kProgram]);
  s.residency.each(range, [&](Block& block, Mask mask) {
    if (block.device != kCpu && !block.in_flight && (!block.read_mostly || write)) {
      const std::uint64_t bytes = mask_bytes(block.present & ~block.on_host);
      DeviceState& d = s.devices[block.device];
      d.counters.bytes_d2h += bytes;
      s.clocks[host] += s.machine.copy_latency_ns + static_cast<double>(bytes) / s.machine.d2h_gbps;
      block.on_host |= block.present;
      s.release(block.device, block);
    }
    block.on_host |= mask;
  });
}

bool Engine::query(Host host, Event event) {
  state_->run_to(std::min(state_->clocks[host], state_->clocks[kProgram]));
  return state_->events[event]->time <= state_->clocks[host];
}

bool Engine::query_stream(Host host, Stream stream) {
  State& s = *state_;
  s.run_to(std::min(s.clocks[host], s.clocks[kProgram]));
  return s.streams[stream].operations.empty() && s.streams[stream].last_end <= s.clocks[host];
}

void Engine::synchronise(Host host, Event event) {
  State& s = *state_;
  const std::shared_ptr<Marker> marker = s.events[event];
  s.run_until([&] { return marker->complete(); });
  if (marker->complete()) {
    s.clocks[host] = std::max(s.clocks[host], marker->time);
  }
}

void Engine::synchronise_stream(Host host, Stream stream) {
  State& s = *state_;
  s.run_until([&] { return s.streams[stream].operations.empty(); });
  s.clocks[host] = std::max(s.clocks[host], s.streams[stream].last_end);
}

void Engine::synchronise_device(Host host, int device) {
  State& s = *state_;
  for (Stream stream = 0; stream < s.streams.size(); ++stream) {
    if (s.streams[stream].device == device) {
      synchronise_stream(host, stream);
    }
  }
}

double Engine::event_time(Event event) const {
  const Marker& marker = *state_->events[event];
  return marker.complete() && marker.time >= 0 ? marker.time : std::numeric_limits<double>::quiet_NaN();
}

bool Engine::deadlocked() const { return state_->stuck; }

Counters Engine::counters(int device) const {
  const State& s = *state_;
  Counters sum{};
  for (std::size_t i = 0; i < s.devices.size(); ++i) {
    if (device != kCpu && static_cast<std::size_t>(device) != i) {
      continue;
    }
    const Counters& c = s.devices[i].counters;
    sum.gpu_time_ns = std::max(sum.gpu_time_ns, c.gpu_time_ns);
    sum.compute_ns += c.compute_ns;
    sum.stall_ns += c.stall_ns;
    for (const auto member :
         {&Counters::kernels, &Counters::copies, &Counters::faults, &Counters::fault_batches, &Counters::bytes_h2d, &Counters::bytes_d2h,
          &Counters::bytes_demand, &Counters::bytes_prefetched, &Counters::bytes_prefetched_used, &Counters::bytes_driver_evicted,
          &Counters::bytes_prefetched_out, &Counters::bytes_discarded, &Counters::bytes_accessed, &Counters::bytes_missing,
          &Counters::resident_bytes, &Counters::peak_resident_bytes, &Counters::discarded_uses}) {
      sum.*member += c.*member;
    }
  }
  sum.managed_bytes = s.managed_bytes;
  sum.peak_managed_bytes = s.peak_managed_bytes;
  return sum;
}

const std::vector<Violation>& Engine::violations() const { return state_->violations; }

std::vector<Engine::Fault> Engine::take_faults() { return std::exchange(state_->observed, {}); }

}  // namespace deepum::um_model
