// What the mover's rules (native/mover) ask of a simulation: streams, events and memory of the
// model, markers and allocations of the replayed program. No call fails.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "discard_map.hpp"
#include "gates.hpp"
#include "markers.hpp"
#include "mover_backend.hpp"
#include "places.hpp"
#include "records.h"

namespace deepum::simulate {

class ModelBackend final : public mover::MoverBackend {
 public:
  // `blocking`: the calls that block the mover's thread where they lie behind an event.
  ModelBackend(um_model::Engine& engine, um_model::Host host, int devices,
               um_model::Blocking blocking, Markers& markers, Places& places);
  ModelBackend(const ModelBackend&) = delete;
  ModelBackend& operator=(const ModelBackend&) = delete;

  um_model::Blocking blocking() const { return blocking_; }
  Gates& gates() { return gates_; }
  const Gates& gates() const { return gates_; }
  // What became of commands that failed, since the last call.
  std::vector<std::pair<deepum_command, deepum_moved_status>> take_answers() {
    return std::exchange(answers_, {});
  }

  // The program's side of discards (native/runtime/discards.hpp).
  void use_after_discards(um_model::Range range);  // its streams wait
  // Its thread waits: the memory ends.
  void wait_for_discards(um_model::Range range);
  // A stream that was not launched on yet.
  void follow_discards(um_model::Stream stream);
  void forbid_discards() { discards_forbidden_ = true; }  // from the first graph launch on
  void refuse_discards() { has_discards_ = false; }       // the driver has none
  // The driver does, before memory is freed.
  void wait_for_moves(std::uint32_t slot, std::uint32_t device);

  mover::EventHandle make_event() override;
  bool record_event(mover::LaneId lane, mover::EventHandle event) override;
  bool wait_event(mover::LaneId lane, mover::EventHandle event) override;
  bool completed(mover::EventHandle event) override;
  bool cover(std::uint32_t stream, std::uint64_t sequence,
             std::vector<mover::MarkerRef>* found) override;
  bool record_marker(std::uint32_t device, std::uint32_t stream) override;
  void want_marker(std::uint32_t) override {}
  bool still(const mover::MarkerRef&) override { return true; }
  std::uint64_t unreported_streams() override { return 0; }
  std::optional<mover::Range> pin(const deepum_command& command) override;
  void release_last() override { pinned_.pop_back(); }
  void release_all() override { pinned_.clear(); }
  bool has_context(std::uint32_t) override { return true; }
  bool prepare(mover::LaneId lane) override;
  bool idle(mover::LaneId lane) override { return engine_.completed_stream(*lanes_[lane].stream); }
  void synchronise(mover::LaneId lane) override {
    engine_.synchronise_stream(host_, *lanes_[lane].stream);
  }
  bool defers(const deepum_command& command) const override;
  bool has_batches() const override { return true; }
  mover::Error prefetch(mover::LaneId lane, std::span<const mover::Range> ranges,
                        std::int32_t location) override;
  mover::Error advise_now(mover::LaneId lane, std::span<const mover::Range> ranges,
                          const AdviceList& advice) override;
  mover::Error serve_advice(mover::LaneId lane, std::span<const mover::Range> ranges,
                            const AdviceList& advice) override;
  mover::Error discard(mover::LaneId lane, mover::Range range) override;
  void turned_off(mover::Error) override {}
  bool can_discard() override { return has_discards_ && !discards_forbidden_; }
  bool discards_forbidden() override { return discards_forbidden_; }
  bool commit_discard(mover::LaneId lane, const deepum_command& command,
                      mover::Range range) override;
  void discard_given(mover::LaneId lane, std::uint64_t address, std::uint64_t id,
                     mover::EventHandle event) noexcept override;
  void refuse_discards(mover::Error) override { refuse_discards(); }
  bool can_hold(const deepum_command& hold) override { return stream_of(hold).has_value(); }
  void hold(const deepum_command& hold, std::size_t bringing, mover::EventHandle event) override;
  bool gates_used() const override { return gates_.used(); }
  void suspend_gates(bool suspended) override { gates_.suspend(suspended); }
  bool begin_gates(std::uint32_t) override;
  void end_gates(const char*) override {}
  void set_processed(std::uint64_t) override {}
  std::uint64_t last_waiter(std::uint32_t stream) override {
    return gates_.has(stream) ? UINT64_MAX : 0;
  }
  std::uint32_t gate_epoch() override { return 0; }
  bool write_gate(std::uint32_t stream, std::uint32_t epoch, std::uint64_t sequence) override;
  bool gate_waits(std::uint32_t stream, mover::EventHandle event) override;
  void answer(const deepum_command& command, deepum_moved_status status, mover::Error) override {
    answers_.emplace_back(command, status);
  }

 private:
  struct Lane {
    std::optional<um_model::Stream> stream;
    // slots, since the stream was last seen empty: a free waits for these moves.
    std::set<std::uint32_t> moved;
  };
  const std::optional<um_model::Stream>& stream_of(const deepum_command& hold) const;
  void note_moved(mover::LaneId lane) { lanes_[lane].moved.insert(pinned_.begin(), pinned_.end()); }
  mover::Error advise(um_model::Host host, std::span<const um_model::Range> ranges,
                      const AdviceList& advice);

  um_model::Engine& engine_;
  const um_model::Host host_;
  const um_model::Blocking blocking_;
  Markers& markers_;
  Places& places_;
  Gates gates_;
  std::vector<Lane> lanes_;                      // by LaneId
  std::vector<mover::DiscardMap> discards_;      // by device
  std::optional<um_model::Event> last_discard_;  // behind it
  std::vector<std::uint32_t> pinned_;            // slots
  bool has_discards_ = true, discards_forbidden_ = false;
  std::vector<std::pair<deepum_command, deepum_moved_status>> answers_;
};

}  // namespace deepum::simulate
