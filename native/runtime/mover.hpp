// The mover: the thread that carries the daemon's commands out, behind the program's own progress,
// by the rules of native/mover. It takes commands out of the ring, does a round when there may be
// something to do, sleeps in between, and watches the daemon.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "connection.hpp"
#include "cuda_backend.hpp"
#include "gates.hpp"
#include "lock_step.hpp"
#include "marker_table.hpp"
#include "mover_rules.hpp"
#include "shared_memory.hpp"
#include "shim_settings.hpp"

namespace deepum::runtime {

// What the mover's thread tells the session.
class MoverListener {
 public:
  virtual void daemon_gone(const char* why) noexcept = 0;
  // Whenever there may be room in the ring again.
  virtual void recover_lost_events() noexcept = 0;
  virtual std::uint64_t events_waiting() noexcept = 0;  // bytes that the daemon has not taken
  virtual std::uint64_t events_taken() noexcept = 0;    // position

 protected:
  ~MoverListener() = default;
};

class Mover {
 public:
  Mover(const SharedMemory& memory, MarkerTable& markers, LockStep& lock_step, Gates& gates,
        MoverListener& listener, const ShimSettings& settings);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  bool start(Connection* connection) noexcept;  // the thread closes the connection at its end
  // False: it did not end in time, and is left to itself.
  bool stop(int timeout_ms) noexcept;
  void ask_to_stop() noexcept;
  void wake() noexcept { ring_eventfd(memory_.mover_fd); }

  void enter_device(int device, CUcontext context) noexcept {
    backend_.enter_device(device, context);
  }
  // The devices that had it, a bit each.
  std::uint32_t context_destroyed(CUcontext context) noexcept;
  // For launches in lock-step: is there anything that could be carried out now?
  bool has_work() const noexcept;
  void marker_recorded() noexcept;
  // What the launch that was waited for in lock-step is to be held by: on a thread's own default
  // stream it is that thread that holds it. By direction of kBringing; null: nothing.
  CUevent take_hold(std::uint32_t stream_id, std::size_t direction) noexcept {
    return backend_.take_hold(stream_id, direction);
  }
  // Memory is about to end: returns when what was asked of the driver about it has been done.
  void wait_for_advice(std::uint64_t address, std::uint64_t bytes) noexcept {
    backend_.wait_for_advice(address, bytes);
  }

 private:
  void run() noexcept;
  void loop();
  void take_commands();
  void note_waiting() noexcept;
  void sleep() noexcept;
  void watch_daemon() noexcept;
  bool may_sleep() const noexcept;
  std::uint64_t decided() const noexcept {
    return __atomic_load_n(&memory_.control->decided_sequence, __ATOMIC_ACQUIRE);
  }
  std::uint64_t written() const noexcept {
    return __atomic_load_n(&memory_.control->command_written, __ATOMIC_ACQUIRE);
  }

  const SharedMemory memory_;
  MarkerTable& markers_;
  LockStep& lock_step_;
  Gates& gates_;
  MoverListener& listener_;
  const bool in_lock_step_;
  Connection* connection_ = nullptr;
  pthread_t thread_{};

  std::atomic<bool> stopping_{false};
  std::atomic<bool> watches_markers_{false};
  std::atomic<std::uint64_t> taken_{0};  // commands, bytes
  std::atomic<std::uint64_t> tried_{0};  // of these, those that a round has looked at
  std::atomic<std::uint64_t> seen_epoch_{0};
  std::atomic<std::uint64_t> waiting_{0};    // commands in the lanes, when the rules were last done
  std::atomic<std::uint32_t> destroyed_{0};  // bit: the device's context

  // The thread's own.
  CudaBackend backend_;
  mover::MoverRules rules_;
  std::uint64_t last_progress_ = 0;
  std::int64_t last_look_ms_ = 0;
  std::uint64_t silent_looks_ = 0;
};

}  // namespace deepum::runtime
