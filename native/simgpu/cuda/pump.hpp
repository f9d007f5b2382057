// Host functions: user code that runs in the middle of a stream, on a thread of the driver's, without the driver's lock.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>

#include "state.hpp"

namespace deepum::simgpu {

// A job becomes due when the engine reaches it; the stream stands still until the pump's thread has run it.
struct Job {
  std::function<void()> function;
  um_model::Stream stream;
  bool done = false;
};

struct Pump {
  std::condition_variable wake;      // for the pump's thread: something is due
  std::condition_variable finished;  // for callers that wait for progress
  std::deque<std::shared_ptr<Job>> due;
  std::deque<std::shared_ptr<Job>> outstanding;  // queued on streams, not run yet
  bool running = false;                          // a host function is executing
  bool started = false;
};

// Queues a host function on a stream. Lock held.
void queue_host_function(State& state, um_model::Host host, um_model::Stream stream, std::function<void()> function);

// Runs user code soon, in no stream's order. Lock held.
void run_soon(State& state, std::function<void()> function);

}  // namespace deepum::simgpu
