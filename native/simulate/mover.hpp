// The mover in virtual time. The rules of native/runtime/mover_issue.cpp, which tests/simulate holds it to: equal commands
// and times for a recorded run. What the runtime needs for threads, failing calls and several contexts is not here.
//
//  1. Each direction of a device carries its commands out in order; discards first, then what goes out, then what comes in, as long as
//     one of them gets on.
//  2. A command goes once each stream of its mask has a marker that covers its launches (recorded here and now if need be), and the
//     command of another direction that it follows has been issued or given up.
//  3. Its lane waits for these markers and for an event behind that command, unless it has waited for as much.
//  4. Commands right behind it of the same cause and kind that need nothing more go along, in one call of up to 64 stretches.
//  5. An event follows a command that another direction waits for, and every prefetch from the first hold on.
//  6. A discard goes only if its memory is whole UM blocks of inactive PyTorch memory and was not handed out since it was decided.
//  7. A held launch's stream waits for the prefetch, if that has been issued.
//
// Running free differs: markers are the program's alone; so many bytes of each lane are with the driver at a time, with events behind each
// sixteenth of them, unless launches wait at gates (gates.hpp), which is why nothing is handed over too early; what is advised in order is
// advised by the thread itself once all before it is done, and so is all that moves where the driver would block it; a launch waits at a
// gate, or is not held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "discard_map.hpp"
#include "gates.hpp"
#include "lane_ledger.hpp"
#include "markers.hpp"
#include "move_queue.hpp"
#include "places.hpp"
#include "records.h"

namespace deepum::simulate {

class Mover : private mover::LaneEvents {
 public:
  struct Mode {
    bool fetches = true;  // false: as with DEEPUM_PREFETCH=0
    bool lock_step = true;
    bool gates = false;  // running free: launches wait for their moves in stream order
    // Running free: what is made once all that it follows is done, and not queued behind it.
    um_model::Blocking blocking = um_model::Blocking::kNone;
    std::uint64_t handover_bytes = 0;  // with the driver at a time, of each lane, running free: DEEPUM_HANDOVER_BYTES
  };
  Mover(um_model::Engine& engine, int devices, const Mode& mode, Markers& markers, Places& places);
  um_model::Host host() const { return host_; }
  Gates& gates() { return gates_; }
  const Gates& gates() const { return gates_; }

  void accept(const deepum_command& command);
  bool has_work() const { return fresh_ || waiting_ != 0; }
  // Carries out what can be now. `answer` is told what became of commands that failed.
  void round(const std::function<void(const deepum_command&, deepum_moved_status)>& answer);
  // Since the latest round, running free: something waits for a marker, or for the driver to have done what it was given.
  bool wants_marker() const { return wants_marker_; }
  bool looks_again_soon() const { return looks_again_soon_; }
  bool polls_events() const { return mode_.blocking != um_model::Blocking::kNone; }

  // The program's side of discards (native/runtime/discards.hpp).
  void use_after_discards(um_model::Range range);                 // its streams wait
  void wait_for_discards(um_model::Range range);                  // its thread waits: the memory ends
  void follow_discards(um_model::Stream stream);                  // a stream that was not launched on yet
  void forbid_discards() { discards_forbidden_ = true; }          // from the first graph launch on, or where the driver has none
  void wait_for_moves(std::uint32_t slot, std::uint32_t device);  // the driver does, before memory is freed

 private:
  struct Lane {
    mover::MoveQueue queue;
    mover::LaneLedger ledger{0};
    std::optional<um_model::Stream> stream;
    std::set<std::uint32_t> moved;  // slots, since the stream was last seen empty: a free waits for these moves
  };
  struct Requirements {
    std::vector<std::pair<const StreamMarkers*, Marker>> markers;
    std::vector<std::pair<Lane*, std::uint64_t>> moves;
    bool empty() const { return markers.empty() && moves.empty(); }
  };
  struct Device {
    Lane lanes[DEEPUM_DIRECTIONS];
    mover::DiscardMap discards;
  };
  using Answer = std::function<void(const deepum_command&, deepum_moved_status)>;

  Lane& lane_of(mover::LaneId lane) { return devices_[mover::lane_device(lane)].lanes[mover::lane_direction(lane)]; }
  void prepare(Lane& lane, int device);
  mover::EventHandle make_event() override;
  bool record_event(mover::LaneId lane, mover::EventHandle event) override;
  bool wait_event(mover::LaneId lane, mover::EventHandle event) override;
  bool completed(mover::EventHandle event) override;
  um_model::Event event_after(Lane& lane, std::uint64_t id);
  bool advance(int device, int direction, const Answer& answer);
  bool issue(int device, int direction, const Answer& answer);
  bool issue_discard(int device, const Answer& answer);
  bool requirements(int device, int direction, const deepum_command& command, Requirements* found);
  std::size_t gather(int device, int direction, std::vector<um_model::Range>* spans);
  void carry_out(Lane& lane, const deepum_command& command, const std::vector<um_model::Range>& spans);
  void advise(um_model::Host host, const std::vector<um_model::Range>& spans, const AdviceList& advice);
  void wait_for(Lane& lane, const Requirements& required);
  bool waits_itself(const deepum_command& command) const;
  bool serves_advice() const { return mode_.lock_step || (gates_.used() && mode_.blocking == um_model::Blocking::kNone); }
  // The thread waits until the command can be carried out at once, and looks again soon.
  bool waits(Lane& lane, const deepum_command& command, const Requirements& required);
  bool reached(Lane& lane, const Requirements& required);  // all that it has to wait for has been done, and all that it waits for already
  bool done(const Requirements& required);
  bool full(Lane& lane, std::uint64_t bytes);  // the driver has enough of it for now
  void finish(Lane& lane, std::uint64_t id, int where);
  void hold_launches();

  um_model::Engine& engine_;
  Markers& markers_;
  Places& places_;
  const Mode mode_;
  um_model::Host host_;  // the mover's thread
  Gates gates_;
  std::vector<Device> devices_;
  std::unique_ptr<mover::SettledMoves> settled_ = std::make_unique<mover::SettledMoves>();
  std::vector<deepum_command> holds_;
  bool holds_launches_ = false;
  bool wants_marker_ = false, looks_again_soon_ = false;
  bool fresh_ = false;  // commands that no round has looked at
  std::uint64_t waiting_ = 0;

  std::optional<um_model::Event> last_discard_;  // behind it
  bool discards_forbidden_ = false;
};

}  // namespace deepum::simulate
