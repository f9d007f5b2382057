// The driver's state: one lock, the engine, what is alive. Everything below is touched with the
// lock held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "blocks.hpp"
#include "cuda_api.hpp"
#include "engine.hpp"
#include "memory.hpp"
#include "work_log.hpp"
#include "written_pages.hpp"

namespace deepum::simgpu {

struct Stream;
struct Capture;
struct Pump;

// What a call says about its thread (engine.hpp: program clock and helper clocks).
enum class Role {
  neutral,  // asks for something; costs no time
  program,  // launches, copies, allocates: the thread is the program's from here on
  // prefetches, advises, discards, records, waits for an event: a thread that did nothing else is a
  // helper.
  migration,
  synchronise,  // waits: the program's, unless the thread is a helper already
  poll,         // asks and does not wait: a helper's, unless the thread is the program's
};

struct Device {
  std::uint64_t memory_bytes = 0;
  // Kept for good once made: its handle stays the same over release and retain.
  CUcontext primary = nullptr;
  int primary_users = 0;
  unsigned primary_flags = 0;
  // Error of a kernel; every later call on the device answers with it.
  CUresult sticky = CUDA_SUCCESS;
};

struct State {
  State();

  const um_model::Machine& machine;
  // Without it (WSL2, some vGPUs) managed memory cannot be moved to a device on request.
  bool concurrent_managed_access;
  // Bytes from a UM block's beginning to that of each managed allocation (for tests).
  std::uint64_t managed_offset;
  std::vector<Device> devices;
  um_model::Engine engine;
  um_model::WorkLog work_log;  // DEEPUM_SIM_RECORD: what the engine is asked for
  AddressSpace memory;
  Blocks blocks;
  WrittenPages written_pages;

  std::unordered_set<const void*> contexts, streams, events, modules, functions, libraries, graphs,
      graph_execs, pools;
  std::set<CUstream> capturing;  // streams inside a capture
  std::uint64_t next_id = 1;     // of contexts, streams, captures, buffers
  std::uint64_t launches = 0;
  // With kernels that run on the data: discarded memory is poisoned from then on.
  bool host_module_loaded = false;
  std::size_t violations_seen = 0;
  std::set<std::string> unparsed_kernels;
  std::set<std::string> general_kernels;  // of no family that truth.hpp knows
  // Calls so far; the pump sees by it that the program is in none.
  std::uint64_t activity = 0;
  std::unique_ptr<Pump> pump;
  // The process is exiting: time is accounted for, data is not touched any more.
  bool ended = false;

  // Whether work that comes to its turn now still does anything to data: a card that met an error
  // runs nothing.
  bool acts(int device) const {
    return !ended && devices[static_cast<std::size_t>(device)].sticky == CUDA_SUCCESS;
  }
};

// Created by the first cuInit and never destroyed: threads and exit handlers of the program may
// call until the very end. nullptr before cuInit, and in a forked child.
State* state() noexcept;
std::mutex& lock() noexcept;
// cuInit: CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE with a line on standard error for unusable
// DEEPUM_SIM_* settings, or CUDA_ERROR_NOT_INITIALIZED in a forked child of an initialised process.
CUresult initialise() noexcept;
bool forked() noexcept;  // this process is a child of the one that initialised

enum class Need { nothing, initialised, context };

// One entry point: takes the lock, checks what must be there, and on leaving turns violations into
// sticky errors.
//   Call call(Need::context, Role::program); if (!call) return call.error();
class Call {
 public:
  Call(Need need, Role role);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  explicit operator bool() const { return error_ == CUDA_SUCCESS; }
  CUresult error() const { return error_; }
  State& state() const { return *state_; }
  um_model::Engine& engine() const { return state_->engine; }
  CUcontext context() const { return context_; }
  // Whether something is complete by now, which takes time: a polling loop must make the clock go
  // on. A helper thread that finds nothing complete is taken to sleep for longer and longer between
  // its polls, 0.1 ms at most.
  bool poll(const std::function<bool()>& complete);
  int device() const;
  um_model::Host host() const { return host_; }

  // Repeats `advance` (an engine call that blocks in virtual time) until `done`; lets go of the
  // lock while host functions run or a value in memory is waited for. CUDA_ERROR_LAUNCH_TIMEOUT
  // when nothing can ever end the wait, else the device's sticky error.
  CUresult block(const std::function<void()>& advance, const std::function<bool()>& done);

 private:
  std::unique_lock<std::mutex> guard_;
  State* state_ = nullptr;
  CUcontext context_ = nullptr;
  um_model::Host host_ = um_model::kProgram;
  CUresult error_ = CUDA_SUCCESS;
  bool acting_ = false;  // the call may have changed what is counted
};

// Turns violations that the engine reported since the last time into the devices' sticky errors.
void collect_violations(State& state);
void set_sticky(State& state, int device, CUresult error);

// True if the handle is one of `live`.
template <typename Handle>
bool alive(const std::unordered_set<const void*>& live, Handle handle) {
  return handle != nullptr && live.contains(handle);
}

}  // namespace deepum::simgpu
