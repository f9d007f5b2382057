// The mover: the thread that carries the daemon's commands out, behind the program's own progress.
//
// Each device has a stream of ours for each direction. A command is issued as soon as everything it must wait for has an event: the
// markers that cover its launches, and an event behind the command of another direction that it follows. The waiting itself is the
// driver's (cuStreamWaitEvent). Until then the command stays here, and holds up only what is behind it in its own direction.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "advice_server.hpp"
#include "allocations.hpp"
#include "blocking_probe.hpp"
#include "commands.hpp"
#include "connection.hpp"
#include "gates.hpp"
#include "lane_ledger.hpp"
#include "lock_step.hpp"
#include "marker_table.hpp"
#include "move_calls.hpp"
#include "move_queue.hpp"
#include "session.hpp"
#include "shared_memory.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

// What the mover's thread tells the session.
class MoverListener {
 public:
  virtual void daemon_gone(const char* why) noexcept = 0;
  virtual void recover_lost_events() noexcept = 0;      // whenever there may be room in the ring again
  virtual std::uint64_t events_waiting() noexcept = 0;  // bytes that the daemon has not taken
  virtual std::uint64_t events_taken() noexcept = 0;    // position

 protected:
  ~MoverListener() = default;
};

class Mover : private mover::LaneEvents {
 public:
  Mover(const SharedMemory& memory, MarkerTable& markers, LockStep& lock_step, Gates& gates, MoverListener& listener,
        const ShimSettings& settings);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  bool start(Connection* connection) noexcept;  // the thread closes the connection at its end
  bool stop(int timeout_ms) noexcept;           // false: it did not end in time, and is left to itself
  void ask_to_stop() noexcept;
  void wake() noexcept { ring_eventfd(memory_.mover_fd); }

  void enter_device(int device, CUcontext context) noexcept { contexts_[device].store(context, std::memory_order_release); }
  std::uint32_t context_destroyed(CUcontext context) noexcept;  // the devices that had it, a bit each
  // For launches in lock-step: is there anything that could be carried out now?
  bool has_work() const noexcept;
  void marker_recorded() noexcept;
  // What the launch that was waited for in lock-step is to be held by: on a thread's own default stream it is that thread that holds it.
  // By direction of kBringing; null: nothing.
  CUevent take_hold(std::uint32_t stream_id, std::size_t direction) noexcept {
    return stream_id < DEEPUM_MAX_STREAMS ? threads_holds_[direction][stream_id].exchange(nullptr) : nullptr;
  }
  // Memory is about to end: returns when what was asked of the driver about it has been done.
  void wait_for_advice(std::uint64_t address, std::uint64_t bytes) noexcept { server_.wait_for(address, bytes); }

 private:
  struct MoveLane {
    mover::MoveQueue queue;
    mover::LaneLedger ledger{0};
    CUstream stream = nullptr;
  };
  struct Requirements {
    std::vector<std::pair<StreamMarkers*, Marker>> markers;
    std::vector<std::pair<MoveLane*, std::uint64_t>> moves;
    bool empty() const noexcept { return markers.empty() && moves.empty(); }
  };
  struct Device {
    MoveLane lanes[DEEPUM_DIRECTIONS];
  };

  // A gate of the program's (mover_gates.cpp).
  struct GateWriter {
    CUstream stream = nullptr;           // of ours, which writes the gate's word
    std::uint32_t epoch = 0;             // of the word that was written
    std::uint64_t opened = 0;            // sequence: written, or will be behind what is on the stream
    std::deque<deepum_command> holds{};  // of launches behind that
  };

  void run() noexcept;
  void loop();
  void take_commands();
  void accept(const deepum_command& given);
  void carry_out();
  void hold_launches();
  static bool ties_streams(const deepum_command& hold) noexcept;
  void hold_at_gate(const deepum_command& hold);
  void open_gates(std::uint64_t decided);
  bool open_gate(std::uint32_t id, GateWriter& gate, std::uint64_t waited, std::uint64_t decided);
  bool write_gate(std::uint32_t id, GateWriter& gate, std::uint64_t sequence) noexcept;
  bool moves_issued(const deepum_command& hold, std::vector<CUevent>* events);
  bool gated() const noexcept { return gates_.used(); }
  // So much is with the driver at a time: launches wait for nothing, so that what is handed over early may come too early.
  bool limited() const noexcept { return !in_lock_step_ && !gated(); }
  // Moves go to the driver once all that they follow is done, and not behind events; likewise what is advised in order, by this thread.
  bool waits_itself(const deepum_command& command) const noexcept;
  // What is advised in order stands in the lane, which waits for the server's thread. Only where launches wait for moves as well: elsewhere
  // this thread is as good, and no stream waits for a thread.
  bool serves_advice() const noexcept { return in_lock_step_ || (gated() && prefetches_.deferral() == Deferral::kDefers); }
  bool advance(int device, int direction);
  bool issue(int device, int direction);
  bool issue_discard(int device);
  void count_discard(CUresult error) noexcept;
  // Duplicates (mover_duplicates.cpp).
  bool reached(MoveLane& lane, const Requirements& required);
  bool done(const Requirements& required);
  CUresult carry(MoveLane& lane, int device, const deepum_command& command, const std::vector<Span>& spans);
  CUresult give(MoveLane& lane, int device, const std::vector<Span>& spans, const AdviceList& advice);
  std::size_t gather(int device, int direction, std::vector<Span>* spans, std::vector<Allocations::Pin>* pins);
  bool requirements(int device, int direction, const deepum_command& command, Requirements* found);
  bool wait_for(MoveLane& lane, const Requirements& required, bool* again);
  // Of lanes, with the context of the device current (mover_waits.cpp).
  MoveLane& lane_of(mover::LaneId lane) noexcept { return devices_[mover::lane_device(lane)].lanes[mover::lane_direction(lane)]; }
  static bool prepare(MoveLane& lane) noexcept;  // makes the stream if there is none
  mover::EventHandle make_event() override;
  bool record_event(mover::LaneId lane, mover::EventHandle event) override;
  bool wait_event(mover::LaneId lane, mover::EventHandle event) override;
  bool completed(mover::EventHandle event) override;
  CUevent event_after(MoveLane& lane, std::uint64_t id);  // at or behind that command; null: none can be made
  bool use_device(int device) noexcept;
  bool use_context(CUcontext context) noexcept;
  void finish(MoveLane& lane, std::uint64_t id, int where);  // a lane's number, or mover::SettledMoves::kNowhere: nobody need wait for it
  static constexpr int kDirections = DEEPUM_DIRECTIONS;
  static int lane_number(int device, int direction) noexcept { return device * kDirections + direction; }
  void answer(const deepum_command& command, deepum_moved_status status, CUresult error = CUDA_SUCCESS) noexcept;
  void count_failure(CUresult error) noexcept;
  void sleep() noexcept;
  void watch_daemon() noexcept;
  bool may_sleep() const noexcept;
  std::uint64_t decided() const noexcept { return __atomic_load_n(&memory_.control->decided_sequence, __ATOMIC_ACQUIRE); }
  std::uint64_t written() const noexcept { return __atomic_load_n(&memory_.control->command_written, __ATOMIC_ACQUIRE); }

  const SharedMemory memory_;
  MarkerTable& markers_;
  LockStep& lock_step_;
  Gates& gates_;
  MoverListener& listener_;
  const bool in_lock_step_, has_gates_;
  const std::uint64_t handover_bytes_;
  Connection* connection_ = nullptr;
  pthread_t thread_{};

  std::atomic<bool> stopping_{false};
  std::atomic<bool> watches_markers_{false};
  std::atomic<std::uint64_t> taken_{0};  // commands, bytes
  std::atomic<std::uint64_t> tried_{0};  // of these, those that a round has looked at
  std::atomic<std::uint64_t> seen_epoch_{0};
  std::atomic<std::uint64_t> waiting_{0};  // commands in the queues
  std::atomic<CUcontext> contexts_[DEEPUM_MAX_DEVICES] = {};
  std::atomic<std::uint32_t> destroyed_{0};  // bit: the device's context
  std::atomic<CUevent> threads_holds_[kBringing.size()][DEEPUM_MAX_STREAMS] = {};

  // The thread's own.
  Device devices_[DEEPUM_MAX_DEVICES];
  std::vector<deepum_command> holds_;  // of this round
  bool holds_launches_ = false;        // from the first one on, each prefetch gets an event to be held by
  std::array<GateWriter, DEEPUM_MAX_STREAMS> gate_writers_;
  std::unique_ptr<mover::SettledMoves> settled_;
  AdviceServer server_;
  BlockingProbe prefetches_, discards_;
  std::uint64_t last_taken_ = 0;  // id
  CUcontext current_ = nullptr;
  bool wants_marker_ = false;
  bool looks_again_soon_ = false;
  bool off_ = false;
  std::uint32_t failures_in_a_row_ = 0, failed_discards_ = 0;
  std::uint64_t last_progress_ = 0;
  std::int64_t last_look_ms_ = 0;
  std::uint64_t silent_looks_ = 0;
};

}  // namespace deepum::runtime
