// What the mover's rules (native/mover) ask of a real program: its streams' markers, its
// allocations, and the driver, whose calls are made by the mover's thread alone. A failure of a
// call is the rules' to count.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "advice_server.hpp"
#include "allocations.hpp"
#include "blocking_probe.hpp"
#include "commands.hpp"
#include "gates.hpp"
#include "marker_table.hpp"
#include "mover_backend.hpp"
#include "operation_ranges.hpp"
#include "records.h"
#include "shim_settings.hpp"

namespace deepum::runtime {

class CudaBackend final : public mover::MoverBackend {
 public:
  CudaBackend(MarkerTable& markers, Gates& gates, const ShimSettings& settings);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  // --- Any thread.
  void enter_device(int device, CUcontext context) noexcept {
    contexts_[device].store(context, std::memory_order_release);
  }
  // The devices that had it, a bit each.
  std::uint32_t context_destroyed(CUcontext context) noexcept;
  CUevent take_hold(std::uint32_t stream_id, std::size_t bringing) noexcept {
    return stream_id < DEEPUM_MAX_STREAMS ? threads_holds_[bringing][stream_id].exchange(nullptr)
                                          : nullptr;
  }
  void wait_for_advice(std::uint64_t address, std::uint64_t bytes) noexcept {
    server_.wait_for(address, bytes);
  }
  void stop(int timeout_ms) noexcept { server_.stop(timeout_ms); }

  // --- The mover's thread.
  void begin() noexcept;  // before the first call
  void forget_streams(std::uint32_t device) noexcept;
  bool polls_events() const noexcept { return prefetches_.deferral() != Deferral::kDefers; }

  mover::EventHandle make_event() override;
  bool record_event(mover::LaneId lane, mover::EventHandle event) override;
  bool wait_event(mover::LaneId lane, mover::EventHandle event) override;
  bool completed(mover::EventHandle event) override;
  bool cover(std::uint32_t stream, std::uint64_t sequence,
             std::vector<mover::MarkerRef>* found) override;
  bool record_marker(std::uint32_t device, std::uint32_t stream) override;
  void want_marker(std::uint32_t stream) override { markers_.want(stream); }
  bool still(const mover::MarkerRef& marker) override;
  std::uint64_t unreported_streams() override { return markers_.unreported_streams(); }
  std::optional<mover::Range> pin(const deepum_command& command) override;
  void release_last() override { pins_.pop_back(); }
  void release_all() override { pins_.clear(); }
  bool has_context(std::uint32_t device) override { return context(device) != nullptr; }
  bool prepare(mover::LaneId lane) override;
  bool idle(mover::LaneId lane) override;
  void synchronise(mover::LaneId lane) override;
  bool defers(const deepum_command& command) const override;
  bool has_batches() const override;
  mover::Error prefetch(mover::LaneId lane, std::span<const mover::Range> ranges,
                        std::int32_t location) override;
  mover::Error advise_now(mover::LaneId lane, std::span<const mover::Range> ranges,
                          const AdviceList& advice) override;
  mover::Error serve_advice(mover::LaneId lane, std::span<const mover::Range> ranges,
                            const AdviceList& advice) override;
  mover::Error discard(mover::LaneId lane, mover::Range range) override;
  void begin_operation(const deepum_command& first, std::size_t commands,
                       std::span<const mover::Range> ranges) noexcept override {
    if (ranges_) {
      ranges_->begin(first, commands, ranges);
    }
  }
  void end_operation() noexcept override {
    if (ranges_) {
      ranges_->end();
    }
  }
  void turned_off(mover::Error error) override;
  bool can_discard() override;
  bool discards_forbidden() override;
  bool commit_discard(mover::LaneId lane, const deepum_command& command,
                      mover::Range range) override;
  void discard_given(mover::LaneId lane, std::uint64_t address, std::uint64_t id,
                     mover::EventHandle event) noexcept override;
  void refuse_discards(mover::Error error) override;
  bool can_hold(const deepum_command& hold) override;
  void hold(const deepum_command& hold, std::size_t bringing, mover::EventHandle event) override;
  bool gates_used() const override { return gates_.used(); }
  void suspend_gates(bool suspended) override { gates_.suspend(suspended); }
  bool begin_gates(std::uint32_t device) override {
    return use_context(context(device)) && gates_.begin(current_);
  }
  void end_gates(const char* why) override { gates_.end(why); }
  void set_processed(std::uint64_t sequence) override { gates_.set_processed(sequence); }
  std::uint64_t last_waiter(std::uint32_t stream) override { return gates_.last_waiter(stream); }
  std::uint32_t gate_epoch() override { return gates_.epoch(); }
  bool write_gate(std::uint32_t stream, std::uint32_t epoch, std::uint64_t sequence) override;
  bool gate_waits(std::uint32_t stream, mover::EventHandle event) override;
  void answer(const deepum_command& command, deepum_moved_status status,
              mover::Error error) override;

 private:
  CUcontext context(std::uint32_t device) const noexcept {
    return contexts_[device].load(std::memory_order_acquire);
  }
  bool use_context(CUcontext context) noexcept;
  // Of ours, which writes the gate's word; null: none can be had.
  CUstream gate_stream(std::uint32_t stream) noexcept;

  MarkerTable& markers_;
  Gates& gates_;
  const bool lock_step_;
  const OperationRanges* const ranges_ = OperationRanges::instance();
  std::atomic<CUcontext> contexts_[DEEPUM_MAX_DEVICES] = {};
  std::atomic<CUevent> threads_holds_[kBringing.size()][DEEPUM_MAX_STREAMS] = {};

  // The mover's thread's own.
  CUcontext current_ = nullptr;
  // By LaneId.
  std::array<CUstream, std::size_t{DEEPUM_MAX_DEVICES} * DEEPUM_DIRECTIONS> streams_{};
  std::array<CUstream, DEEPUM_MAX_STREAMS> gate_streams_{};
  std::vector<Allocations::Pin> pins_;
  AdviceServer server_;
  BlockingProbe prefetches_, discards_;
};

}  // namespace deepum::runtime
