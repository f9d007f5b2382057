// The engine's face: calls become operations on streams, with the host's clock for their arrival.
#include "engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "state.hpp"

namespace deepum::um_model {

Engine::Engine(const Machine& machine, const Options& options)
    : state_(std::make_unique<State>(machine, options)) {}
Engine::~Engine() = default;
void Engine::observe(Observer* observer) { state_->observer = observer; }

Host Engine::add_helper() {
  state_->clocks.push_back(0);
  return static_cast<Host>(state_->clocks.size() - 1);
}

Host Engine::add_thread() {
  const Host made = add_helper();
  state_->threads.resize(made + 1);
  state_->threads[made] = true;
  return made;
}

void Engine::at(Host thread, double time, std::function<void()> action) {
  state_->alarms.set(thread, time, std::move(action));
}

double Engine::now(Host host) const { return state_->now(host); }
void Engine::spend(Host host, double ns) {
  if (state_->observer != nullptr) {
    state_->observer->spent(host, ns);
  }
  state_->spend(host, ns);
}
void Engine::keep_up(Host host) { state_->move_clock(host, state_->timeline.now()); }
void Engine::program_call() { state_->last_program_call = state_->clocks[kProgram]; }

// --- Streams and events

Stream Engine::add_stream(int device) {
  State& s = *state_;
  s.recycle_streams();
  if (!s.free_streams.empty()) {
    const Stream stream = s.free_streams.back();
    s.free_streams.pop_back();
    s.queue(stream).reuse(device);
    return stream;
  }
  s.streams.push_back(std::make_unique<StreamQueue>(s, s.timeline, device));
  return static_cast<Stream>(s.streams.size() - 1);
}

void Engine::remove_stream(Stream stream) { state_->draining.push_back(stream); }

Event Engine::add_event() {
  State& s = *state_;
  if (!s.free_events.empty()) {
    const Event event = s.free_events.back();
    s.free_events.pop_back();
    return event;
  }
  s.events.emplace_back();
  return static_cast<Event>(s.events.size() - 1);
}

void Engine::remove_event(Event event) {
  state_->events[event].reset();
  state_->free_events.push_back(event);
}

void Engine::record(Host host, Event event, Stream stream) {
  if (state_->observer != nullptr) {
    state_->observer->recorded(host, event, stream);
  }
  auto recording = std::make_shared<Recording>();
  state_->events[event] = recording;
  state_->enqueue(host, stream, Record{std::move(recording)});
}

void Engine::wait(Host host, Stream stream, Event event) {
  if (state_->observer != nullptr) {
    state_->observer->waited(host, stream, event);
  }
  const std::shared_ptr<Recording>& recording = state_->events[event];
  if (recording != nullptr) {
    state_->enqueue(host, stream, Wait{recording});
  }
}

Word Engine::add_word() {
  state_->words.emplace_back();
  return static_cast<Word>(state_->words.size() - 1);
}

void Engine::wait_value(Host host, Stream stream, Word word, std::uint64_t least) {
  state_->spend(host, state_->machine.value_wait_ns);
  state_->enqueue(host, stream, WaitValue{&state_->words[word], least});
}

void Engine::write_value(Host host, Stream stream, Word word, std::uint64_t value) {
  state_->enqueue(host, stream, WriteValue{&state_->words[word], value});
}

// --- Work

void Engine::launch(Host host, Stream stream, Kernel kernel) {
  if (state_->observer != nullptr) {
    state_->observer->launched(host, stream, kernel);
  }
  State& s = *state_;
  s.spend(host, kernel.of_graph ? 0 : s.machine.launch_ns);
  if (s.launches_outstanding >= s.machine.launch_queue) {
    s.run_to([&] { return s.launches_outstanding < s.machine.launch_queue; });
    s.move_clock(host, s.timeline.now());
  }
  ++s.launches_outstanding;
  s.enqueue(host, stream, KernelWork{std::move(kernel), true});
}

void Engine::copy(Host host, Stream stream, Range destination, Range source, int kind,
                  std::function<void()> effect) {
  copy(host, stream, std::vector{destination}, std::vector{source}, source.bytes, kind,
       std::move(effect));
}

void Engine::copy(Host host, Stream stream, std::vector<Range> destination,
                  std::vector<Range> source, std::uint64_t bytes, int kind,
                  std::function<void()> effect) {
  if (state_->observer != nullptr) {
    state_->observer->copied(host, stream, destination, source, bytes, kind);
  }
  State& s = *state_;
  s.spend(host, s.machine.launch_ns);
  switch (kind) {
    case 1:
      s.enqueue(host, stream, BulkCopy{true, std::move(destination), bytes, std::move(effect)});
      return;
    case 2:
      s.enqueue(host, stream, BulkCopy{false, std::move(source), bytes, std::move(effect)});
      return;
    case 3: {
      Kernel kernel;
      for (const Range& row : source) {
        kernel.accesses.push_back({row, true, false});
      }
      for (const Range& row : destination) {
        kernel.accesses.push_back({row, false, true});
      }
      kernel.effect = std::move(effect);
      s.enqueue(host, stream, KernelWork{std::move(kernel), false});
      return;
    }
    default:
      s.enqueue(host, stream,
                HostCopy{static_cast<double>(bytes) / s.machine.host_gbps, std::move(effect)});
      return;
  }
}

void Engine::fill(Host host, Stream stream, Range destination, std::function<void()> effect) {
  if (state_->observer != nullptr) {
    state_->observer->filled(host, stream, destination);
  }
  State& s = *state_;
  s.spend(host, s.machine.launch_ns);
  Kernel kernel;
  kernel.accesses = {{destination, false, true}};
  kernel.effect = std::move(effect);
  s.enqueue(host, stream, KernelWork{std::move(kernel), false});
}

void Engine::prefetch(Host host, Stream stream, std::span<const Range> ranges, int location) {
  if (state_->observer != nullptr) {
    state_->observer->prefetched(host, stream, ranges, location);
  }
  State& s = *state_;
  s.spend(host, s.machine.migration_call_ns);
  if (location != kCpu && (location < 0 || location >= s.residency.devices())) {
    return;
  }
  s.enqueue(host, stream, Migration{{ranges.begin(), ranges.end()}, location, 0});
}

void Engine::discard(Host host, Stream stream, std::span<const Range> ranges, int then_location,
                     bool then_prefetch) {
  if (state_->observer != nullptr) {
    state_->observer->discarded(host, stream, ranges, then_location, then_prefetch);
  }
  State& s = *state_;
  s.spend(host, s.machine.migration_call_ns);
  ++s.discards;
  if (then_prefetch && then_location >= kCpu && then_location < s.residency.devices()) {
    s.enqueue(host, stream, Migration{{ranges.begin(), ranges.end()}, then_location, s.discards});
  } else {
    s.enqueue(host, stream, Discard{{ranges.begin(), ranges.end()}, s.discards});
  }
}

int Engine::launches_outstanding() const { return state_->launches_outstanding; }

std::uint64_t Engine::discards() const { return state_->discards; }

void Engine::advise(Host host, std::span<const Range> ranges, Advice advice, int location) {
  if (state_->observer != nullptr) {
    state_->observer->advised(host, ranges, advice, location);
  }
  State& s = *state_;
  s.spend(host, s.machine.migration_call_ns);
  s.advice.push(s.now(host), ranges, advice, location);
}

void Engine::call(Host host, Stream stream, std::function<void()> function) {
  if (state_->observer != nullptr) {
    state_->observer->called(host, stream);
  }
  state_->enqueue(host, stream, HostFunction{std::move(function)});
}
void Engine::serve(Host host, Stream stream, std::function<void()> function) {
  state_->enqueue(host, stream, Service{std::move(function)});
}
void Engine::on_discard(std::function<void(Range)> poison) { state_->poison = std::move(poison); }
void Engine::wait_until(Host host, Stream stream, std::function<bool()> ready) {
  state_->enqueue(host, stream, Hold{std::move(ready)});
}

// --- Progress

void Engine::catch_up(Host host) { state_->run_until(state_->now(host)); }

bool Engine::query(Host host, Event event) {
  State& s = *state_;
  s.run_until(s.now(host));
  const std::shared_ptr<Recording>& recording = s.events[event];
  return recording == nullptr || (recording->done && recording->time <= s.now(host));
}

bool Engine::query_stream(Host host, Stream stream) {
  State& s = *state_;
  s.run_until(s.now(host));
  const StreamQueue& queue = s.queue(stream);
  return queue.completed() == queue.enqueued() && queue.last_completion() <= s.now(host);
}

bool Engine::completed(Event event) const {
  const std::shared_ptr<Recording>& recording = state_->events[event];
  return recording == nullptr || recording->done;
}

bool Engine::completed_stream(Stream stream) const {
  const StreamQueue& queue = state_->queue(stream);
  return queue.completed() == queue.enqueued();
}

void Engine::synchronise(Host host, Event event) {
  if (state_->observer != nullptr) {
    state_->observer->synchronised(host, event);
  }
  State& s = *state_;
  const std::shared_ptr<Recording> recording = s.events[event];
  if (recording != nullptr && s.run_to([&] { return recording->done; })) {
    s.move_clock(host, recording->time);
  }
}

void Engine::synchronise_stream(Host host, Stream stream) {
  if (state_->observer != nullptr) {
    state_->observer->synchronised_stream(host, stream);
  }
  State& s = *state_;
  const StreamQueue& queue = s.queue(stream);
  if (s.run_to([&] { return queue.completed() == queue.enqueued(); })) {
    s.move_clock(host, queue.last_completion());
  }
}

void Engine::synchronise_device(Host host, int device) {
  for (std::size_t stream = 0; stream < state_->streams.size(); ++stream) {
    if (state_->streams[stream]->device() == device) {
      synchronise_stream(host, static_cast<Stream>(stream));
    }
  }
}

double Engine::event_time(Event event) const {
  const std::shared_ptr<Recording>& recording = state_->events[event];
  return recording != nullptr && recording->done ? recording->time
                                                 : std::numeric_limits<double>::quiet_NaN();
}

bool Engine::deadlocked() const {
  const State& s = *state_;
  if (s.timeline.next() < kForever) {
    return false;
  }
  return std::any_of(s.streams.begin(), s.streams.end(),
                     [](const auto& queue) { return queue->completed() != queue->enqueued(); });
}

const std::vector<Violation>& Engine::violations() const { return state_->faults.violations(); }
std::vector<Fault> Engine::take_faults() { return state_->faults.take_faults(); }
std::uint64_t Engine::faults_dropped() const { return state_->faults.dropped(); }

void Engine::keep_activities() {
  state_->activities = std::make_unique<Activities>();
  state_->residency.activities = state_->activities.get();
}
std::vector<deepum_activity> Engine::take_activities() {
  return state_->activities != nullptr ? state_->activities->take()
                                       : std::vector<deepum_activity>{};
}

}  // namespace deepum::um_model
