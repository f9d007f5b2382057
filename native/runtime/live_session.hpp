// The session that this process has with the daemon: what is shared with it, and the program's side
// of it. One at most lives at a time; session.hpp, launches.hpp and discard_order.hpp are what the
// hooks see.
#pragma once

#include <atomic>
#include <cstdint>

#include "connection.hpp"
#include "daemon_start.hpp"
#include "event_ring.hpp"
#include "gates.hpp"
#include "lock_step.hpp"
#include "marker_table.hpp"
#include "mover.hpp"
#include "progress.hpp"
#include "records.h"
#include "shared_memory.hpp"
#include "shim_settings.hpp"
#include "stall_clock.hpp"

namespace deepum::runtime {

class Session final : public MoverListener {
 public:
  explicit Session(const SharedMemory& memory)
      : memory_(memory), mover_(memory, markers, lock_step, gates, *this, settings()) {
    ring.use(memory);
    lock_step.use(memory);
  }

  bool start() noexcept { return mover_.start(&connection); }
  std::uint64_t emit(deepum_event_header* record) noexcept;
  void wait_for_decisions(std::uint64_t sequence) noexcept;
  void marker_recorded() noexcept { mover_.marker_recorded(); }
  // Out of lock-step, under pressure: the launch that is about to be queued waits on its stream for
  // its moves.
  void wait_at_gate(CUstream stream, std::uint32_t stream_id, std::uint64_t sequence) noexcept;
  // Until the mover has processed what was decided up to this thread's latest event, or for two
  // milliseconds.
  void wait_for_mover() noexcept;
  Mover& mover() noexcept { return mover_; }
  void handle_refused() noexcept {
    __atomic_fetch_add(&memory_.control->handles_refused, 1u, __ATOMIC_RELAXED);
  }
  void allocation_refused() noexcept {
    __atomic_fetch_add(&memory_.control->allocations_refused, 1u, __ATOMIC_RELAXED);
  }
  void allocatable(std::uint64_t bytes) noexcept {
    __atomic_store_n(&memory_.control->allocatable_bytes, bytes, __ATOMIC_RELAXED);
  }
  bool wants_faults() const noexcept {
    return __atomic_load_n(&memory_.control->wants_faults, __ATOMIC_RELAXED) != 0;
  }
  bool wants_times() const noexcept {
    return __atomic_load_n(&memory_.control->wants_times, __ATOMIC_RELAXED) != 0;
  }
  bool wants_reads() const noexcept {
    return __atomic_load_n(&memory_.control->wants_reads, __ATOMIC_RELAXED) != 0;
  }
  bool wants_free_memory() const noexcept {
    return __atomic_load_n(&memory_.control->wants_free_memory, __ATOMIC_RELAXED) != 0;
  }
  void free_memory_after_launch(CUdevice device) noexcept;
  void read_free_memory(CUdevice device) noexcept;
  void leave() noexcept;
  // Beginning: the daemon did not have the memory yet.
  void close_in_child(bool beginning) noexcept;

  void daemon_gone(const char* why) noexcept override;
  void recover_lost_events() noexcept override;
  std::uint64_t events_waiting() noexcept override { return ring.reserved() - ring.consumed(); }
  std::uint64_t events_taken() noexcept override { return ring.consumed(); }

  EventRing ring;
  MarkerTable markers;
  Progress progress;
  Gates gates;
  StallClock stalls;
  LockStep lock_step;
  Connection connection;
  DaemonStart starter;

 private:
  SharedMemory memory_;
  Mover mover_;
  std::atomic<std::uint32_t> launches_since_reading_{0};
  std::atomic<bool> late_reported_{false};
  std::atomic<bool> lost_{false};
  // Sequence: somebody has waited in vain for the mover to look that far.
  std::atomic<std::uint64_t> awaited_in_vain_{0};
  std::uint64_t lost_reported_ = 0;  // of the mover's thread
};

// Null: before the first context, after the end, and whenever there is no daemon.
inline constinit std::atomic<Session*> live{nullptr};

// This thread's launch that the driver has been asked for and has not answered yet. Should it
// refuse, nobody tells: the thread's next launch does.
struct Launch {
  Session* session = nullptr;
  std::uint32_t stream = 0;
  std::uint64_t blocks = 0;    // that it may touch
  std::uint64_t sequence = 0;  // for its stream's markers; its event's, if it has one
};
inline constinit thread_local Launch launching [[gnu::tls_model("initial-exec")]];
inline constinit thread_local std::uint64_t last_sequence [[gnu::tls_model("initial-exec")]] = 0;

}  // namespace deepum::runtime
