// Host functions: user code that runs in the middle of a stream, on a thread of the driver's,
// without the driver's lock.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>

#include "state.hpp"

namespace deepum::simgpu {

// A job becomes due when the engine reaches it; the stream stands still until the pump's thread has
// run it.
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
  bool serving = false;  // the engine stands still for a helper's function
};

// Queues a host function on a stream. Lock held. A helper thread's is carried out in virtual time:
// the engine stands still while it runs, and what another thread, which did nothing else, asks for
// on its behalf happens at the stream's time. Of a program's threads nobody knows what its function
// waits for, so the rest of the engine goes on.
void queue_host_function(State& state, um_model::Host host, um_model::Stream stream,
                         std::function<void()> function);

// Runs user code soon, in no stream's order. Lock held.
void run_soon(State& state, std::function<void()> function);

}  // namespace deepum::simgpu
