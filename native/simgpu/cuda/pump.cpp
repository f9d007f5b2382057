#include "pump.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "thread.hpp"

namespace deepum::simgpu {
namespace {

// A program that waits for its own host function without calling the driver would wait for ever in
// virtual time: after so much real time without a call the pump takes the program's clock to the
// function itself, as if the program had blocked there.
constexpr std::chrono::milliseconds kIdle{20};

void run_due(State& state, std::unique_lock<std::mutex>& guard) {
  Pump& pump = *state.pump;
  while (!pump.due.empty()) {
    const std::shared_ptr<Job> job = pump.due.front();
    pump.due.pop_front();
    pump.running = true;
    guard.unlock();
    job->function();
    guard.lock();
    pump.running = false;
    job->done = true;
    std::erase(pump.outstanding, job);
    pump.finished.notify_all();
  }
}

void pump_thread(State& state) {
  this_thread().in_host_function = true;
  Pump& pump = *state.pump;
  std::unique_lock guard(lock());
  for (;;) {
    run_due(state, guard);
    if (pump.outstanding.empty()) {
      pump.wake.wait(guard, [&] { return !pump.due.empty() || !pump.outstanding.empty(); });
      continue;
    }
    const std::uint64_t before = state.activity;
    if (pump.wake.wait_for(guard, kIdle, [&] { return !pump.due.empty(); })) continue;
    if (state.activity == before && !pump.outstanding.empty()) {
      state.engine.synchronise_stream(um_model::kProgram, pump.outstanding.front()->stream);
      collect_violations(state);
    }
  }
}

void start(State& state) {
  if (state.pump->started) return;
  state.pump->started = true;
  std::thread([&state] { pump_thread(state); }).detach();
}

}  // namespace

void run_soon(State& state, std::function<void()> function) {
  start(state);
  state.pump->due.push_back(std::make_shared<Job>(Job{std::move(function), 0}));
  state.pump->wake.notify_one();
}

namespace {

// In the middle of a step of the engine, with the lock held; other threads' calls wait until it is
// over (Call).
void serve(State& state, const std::function<void()>& function) {
  Pump& pump = *state.pump;
  if (state.ended) return;
  pump.serving = true;
  if (this_thread().in_host_function) {  // the pump's own thread has come to it
    lock().unlock();
    function();
    lock().lock();
  } else {
    const auto job = std::make_shared<Job>(Job{function, 0});
    start(state);
    pump.due.push_front(job);
    pump.wake.notify_one();
    std::unique_lock guard(lock(), std::adopt_lock);
    while (!job->done && !state.ended) pump.finished.wait_for(guard, kIdle);
    guard.release();
  }
  pump.serving = false;
  pump.finished.notify_all();
}

}  // namespace

void queue_host_function(State& state, um_model::Host host, um_model::Stream stream,
                         std::function<void()> function) {
  Pump& pump = *state.pump;
  if (host != um_model::kProgram) {
    start(state);
    state.engine.serve(host, stream, [&state, function] { serve(state, function); });
    return;
  }
  auto job = std::make_shared<Job>(Job{std::move(function), stream});
  pump.outstanding.push_back(job);
  start(state);
  state.engine.call(host, stream, [&state, &pump, job] {
    if (state.ended) return;
    pump.due.push_back(job);
    pump.wake.notify_one();
  });
  state.engine.wait_until(host, stream, [&state, job] { return job->done || state.ended; });
  pump.wake.notify_one();
}

}  // namespace deepum::simgpu
