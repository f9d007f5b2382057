// Streams and events in virtual time.
#include <algorithm>

#include "state.hpp"

namespace deepum::um_model {

Engine::State::State(const Machine& m, const Options& o)
    : machine(m), options(o), clocks(1, 0.0), devices(static_cast<std::size_t>(o.devices)), random(o.random_eviction_seed) {
  for (DeviceState& device : devices) {
    device.memory.capacity_bytes = (o.memory_bytes != 0 ? o.memory_bytes : m.memory_bytes) / kBlockBytes * kBlockBytes;
  }
}

void Engine::State::at(double time, Happening what, std::uint32_t index) { agenda.push({std::max(time, now), order++, what, index}); }

void Engine::State::enqueue(Host host, Stream stream, Work work) {
  streams[stream].operations.push_back({clocks[host], std::move(work)});
  schedule(stream);
}

void Engine::State::schedule(Stream stream) {
  StreamState& s = streams[stream];
  if (s.scheduled || s.operations.empty()) {
    return;
  }
  s.scheduled = true;
  stuck = false;
  at(std::max(s.operations.front().enqueued, s.last_end), Happening::stream_ready, stream);
}

void Engine::State::finish(Stream stream, double time) {
  StreamState& s = streams[stream];
  s.operations.pop_front();
  s.last_end = std::max(s.last_end, time);
  s.scheduled = false;
  schedule(stream);
}

void Engine::State::complete(Marker& marker, double time) {
  marker.time = time;
  std::vector<Stream> waiting;
  waiting.swap(marker.waiting);
  for (const Stream stream : waiting) {
    at(time, Happening::stream_ready, stream);
  }
}

void Engine::State::start(Stream stream, double time) {
  StreamState& s = streams[stream];
  Work& work = s.operations.front().work;
  DeviceState& device = devices[s.device];
  const auto at_engine = [&](Direction direction) {
    device.copy[direction].waiting.push_back(stream);
    start_copy(s.device, direction, time);
  };
  if (std::holds_alternative<KernelWork>(work)) {
    device.compute.waiting.push_back(stream);
    start_kernel(s.device, time);
  } else if (auto* copy = std::get_if<CopyWork>(&work)) {
    at_engine(copy->direction);
  } else if (auto* move = std::get_if<MoveWork>(&work)) {
    at_engine(move->location == kCpu ? kOut : kIn);
  } else if (auto* drop = std::get_if<DiscardWork>(&work)) {
    discard(*drop);
    if (drop->then_prefetch && drop->then_location != kCpu) {
      work = MoveWork{std::move(drop->ranges), drop->then_location};  // leaves no discarded state behind
      at_engine(kIn);
    } else {
      finish(stream, time);
    }
  } else if (auto* record = std::get_if<RecordWork>(&work)) {
    complete(*record->marker, time);
    finish(stream, time);
  } else if (auto* wait = std::get_if<WaitWork>(&work)) {
    if (wait->marker->complete()) {
      finish(stream, std::max(time, wait->marker->time));
    } else {
      wait->marker->waiting.push_back(stream);
    }
  } else if (auto* call = std::get_if<CallWork>(&work)) {
    const std::function<void()> function = std::move(call->function);
    now = std::max(now, time + kHostFunctionNs);
    function();
    finish(stream, time + kHostFunctionNs);
  } else if (auto* hold = std::get_if<HoldWork>(&work)) {
    if (hold->ready()) {
      finish(stream, time);
    } else {
      holds.push_back(stream);
    }
  }
}

void Engine::State::poll_holds(double time) {
  if (holds.empty()) {
    return;
  }
  std::vector<Stream> still;
  std::vector<Stream> polled;
  polled.swap(holds);
  for (const Stream stream : polled) {
    if (std::get<HoldWork>(streams[stream].operations.front().work).ready()) {
      finish(stream, time);
    } else {
      still.push_back(stream);
    }
  }
  holds.insert(holds.end(), still.begin(), still.end());
}

bool Engine::State::step(double limit) {
  poll_holds(now);
  if (agenda.empty() || agenda.top().time > limit) {
    stuck = agenda.empty();
    return false;
  }
  const Entry entry = agenda.top();
  agenda.pop();
  now = std::max(now, entry.time);
  switch (entry.what) {
    case Happening::stream_ready:
      start(entry.index, entry.time);
      break;
    case Happening::kernel:
      continue_kernel(static_cast<int>(entry.index), entry.time);
      break;
    case Happening::copy_in:
      continue_copy(static_cast<int>(entry.index), kIn, entry.time);
      break;
    case Happening::copy_out:
      continue_copy(static_cast<int>(entry.index), kOut, entry.time);
      break;
  }
  if (!unmapped.empty()) {
    const bool idle = std::all_of(devices.begin(), devices.end(),
                                  [](const DeviceState& d) { return !d.compute.busy && !d.copy[kIn].busy && !d.copy[kOut].busy; });
    if (idle) {
      unmapped.clear();
    }
  }
  return true;
}

}  // namespace deepum::um_model
