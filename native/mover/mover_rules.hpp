// The rules by which commands are carried out, for a GPU and for a simulation. Logic only: no
// driver, no threads, no clock.
//
//  1. Each direction of a device carries its commands out in order; discards first, then what goes
//  out, which makes the room for what comes
//     in, as long as one of them gets on.
//  2. A command goes once each stream of its mask has a marker that covers its launches (in
//  lock-step one is recorded if need be), and the
//     command of another direction that it follows has been issued or given up. Until then it holds
//     up what is behind it in its lane alone.
//  3. Its lane waits for these markers and for an event behind that command, unless it waits for as
//  much already. The waiting is the
//     driver's. Where the driver would block this thread for it, or the command advises in order
//     and no server gives advice, the command stays in its lane until all that it follows is done.
//  4. Commands right behind it of the same kind that need nothing more go along, in one call.
//  5. An event follows a command that another direction waits for, each move where launches wait
//  for moves, and so many bytes.
//  6. Outside lock-step and without gates so many bytes of each lane are with the driver at a time.
//  7. A discard goes only if its memory is inactive and was not handed out since it was decided.
//  8. What the program would have to compute again is refused: nothing in it can yet.
//  9. In lock-step a held launch's stream waits for the moves that it is held for; with gates they
//  open behind these moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gate_rules.hpp"
#include "lane_ledger.hpp"
#include "move_queue.hpp"
#include "mover_backend.hpp"
#include "pins.hpp"
#include "records.h"

namespace deepum::mover {

struct MoverOptions {
  std::uint32_t devices = DEEPUM_MAX_DEVICES;
  bool lock_step = false;
  // Outside lock-step: launches may wait for their moves in stream order.
  bool gates = false;
  // False: what would be fetched only waits (DEEPUM_PREFETCH=0).
  bool fetches = true;
  std::uint64_t handover_bytes = UINT64_MAX;  // with the driver at a time, of each lane
};

class MoverRules final : private IssuedMoves {
 public:
  MoverRules(MoverBackend& backend, const MoverOptions& options);
  MoverRules(const MoverRules&) = delete;
  MoverRules& operator=(const MoverRules&) = delete;

  void accept(const deepum_command& command);
  // Carries out what can be now. `decided`: the decisions for all events up to this one have been
  // accepted.
  void round(std::uint64_t decided);
  std::uint64_t waiting() const noexcept { return waiting_; }  // commands in the lanes
  // They ended with the device's context.
  void forget_streams(std::uint32_t device) noexcept;

  // Since the latest round: a command waits for a marker; one waits for what the driver has not
  // done yet.
  bool wants_marker() const noexcept { return wants_marker_; }
  bool looks_again_soon() const noexcept { return looks_again_soon_; }

 private:
  struct Lane {
    MoveQueue queue;
    LaneLedger ledger;
  };
  // What a lane still has to wait for.
  struct Requirements {
    std::vector<MarkerRef> markers;
    std::vector<std::pair<Lane*, std::uint64_t>> moves;
    bool empty() const noexcept { return markers.empty() && moves.empty(); }
  };
  enum class Wait { kDone, kAgain, kFailed };  // kAgain: a marker was recorded anew meanwhile

  // mover_rules.cpp
  bool advance(Lane& lane);
  // A lane's number, or SettledMoves::kNowhere.
  void finish(Lane& lane, const deepum_command& command, int where);
  void give_up(Lane& lane, const deepum_command& command, deepum_moved_status status,
               Error error = kSuccess);
  void count_failure(Error error);
  void hold_launches();
  bool ties_streams(const deepum_command& hold) const;
  bool issued(const deepum_command& hold, std::vector<EventHandle>* events) override;
  // issue_rules.cpp
  bool issue(Lane& lane);
  bool issue_wait(Lane& lane, const Requirements& required);
  std::size_t gather(Lane& lane, std::vector<Range>* ranges, std::uint64_t* bytes, Pins* pins);
  Error carry_out(Lane& lane, const deepum_command& command, const std::vector<Range>& ranges);
  void settle_issued(Lane& lane, std::size_t commands, std::uint64_t bytes, bool at_once,
                     Error error);
  bool full(Lane& lane, std::uint64_t bytes);
  // discard_rules.cpp
  bool issue_discard(Lane& lane);
  void count_discard(Error error);
  // wait_rules.cpp
  bool requirements(const Lane& lane, const deepum_command& command, Requirements* found);
  bool marked(const Lane& lane, std::uint32_t stream, std::uint64_t sequence, Requirements* found);
  bool waits_itself(const deepum_command& command) const;
  bool stays(Lane& lane, const deepum_command& command, const Requirements& required);
  bool done(const Requirements& required);
  Wait wait_for(Lane& lane, const Requirements& required);

  Lane& lane_of(std::uint32_t device, std::uint32_t direction) {
    return lanes_[lane_id(device, direction)];
  }
  bool gated() const { return backend_.gates_used(); }
  // So much is with the driver at a time: launches wait for nothing, so that what is handed over
  // early may come too early.
  bool limited() const { return !options_.lock_step && !gated(); }
  // What is advised in order stands in the lane, which waits for the server's thread. Only where
  // launches wait for moves as well: elsewhere this thread is as good, and no stream waits for a
  // thread.
  bool serves_advice() const;

  MoverBackend& backend_;
  const MoverOptions options_;
  std::vector<Lane> lanes_;  // by LaneId
  std::unique_ptr<SettledMoves> settled_ = std::make_unique<SettledMoves>();
  GateRules gate_rules_;
  std::vector<deepum_command> holds_;  // of this round
  // From the first one on, each prefetch gets an event to be held by.
  bool holds_launches_ = false;
  std::vector<MarkerRef> covering_;
  std::uint64_t waiting_ = 0;
  bool wants_marker_ = false, looks_again_soon_ = false;
  bool off_ = false;
  std::uint32_t failures_in_a_row_ = 0, failed_discards_ = 0;
};

}  // namespace deepum::mover
