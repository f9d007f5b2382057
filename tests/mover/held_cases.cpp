// Launches that are held for moves: on the host in lock-step, at gates elsewhere (rule 9 of
// mover_rules.hpp).
#include "commands_of.hpp"

using deepum::mover::MoverOptions;

namespace {

const MoverOptions kLockStep{.devices = 1, .lock_step = true};
const MoverOptions kGates{.devices = 1, .gates = true};

}  // namespace

CASE(in_lock_step_a_held_launch_waits_for_its_prefetch) {
  Mover mover(kLockStep);
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}), "in: prefetch 0+1 to device 0",
         "in: record e1", "launch 9 waits for e1 of in");
}

CASE(in_lock_step_a_held_launch_waits_for_its_population) {
  Mover mover(kLockStep);
  EXPECT(mover.round({populate(1, {0}), prefetch(2, {1}), hold(3, 9, 1), hold(4, 9, 2)}),
         "populate: prefetch 0+1 to device 0", "populate: record e1",
         "in: prefetch 1+1 to device 0", "in: record e2", "launch 9 waits for e1 of populate",
         "launch 9 waits for e2 of in");
}

CASE(in_lock_step_a_launch_is_held_for_its_own_moves_and_no_later_ones) {
  Mover mover(kLockStep);
  EXPECT(mover.round({caused_by(prefetch(1, {0}), 8), hold(2, 8, 1), caused_by(prefetch(3, {1}), 9),
                      evict(4, {2})}),
         "out: prefetch 2+1 to the CPU", "in: prefetch 0+1 to device 0", "in: record e1",
         "in: prefetch 1+1 to device 0", "in: record e2", "launch 8 waits for e1 of in");
  // each, from the first hold on.
  EXPECT(mover.round({prefetch(5, {3})}), "in: prefetch 3+1 to device 0", "in: record e3");
}

CASE(in_lock_step_a_launch_is_not_held_for_what_is_not_with_the_driver) {
  Mover mover(kLockStep);
  mover.backend.launch(5);
  mover.backend.records_markers = false;
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1)}), "want s0");
  mover.backend.mark();
  // A hold is of its round only.
  EXPECT(mover.round(), "in: wait for s0@5", "in: prefetch 0+1 to device 0", "in: record e1");
}

CASE(in_lock_step_a_launch_is_not_held_for_what_was_given_up) {
  Mover mover(kLockStep);
  mover.backend.ended = {1};
  EXPECT(mover.round({prefetch(1, {.slot = 1}), hold(2, 9, 1)}), "1 stale");
}

CASE(in_lock_step_a_launch_whose_stream_cannot_wait_is_not_held) {
  Mover mover(kLockStep);
  mover.backend.holds = false;
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}), "in: prefetch 0+1 to device 0",
         "in: record e1");
}

CASE(in_lock_step_a_hold_that_ties_streams_is_left_out_where_nothing_is_discarded) {
  Mover mover(kLockStep);
  EXPECT(mover.round({prefetch(1, {0}), advised(hold(2, 9, 1), DEEPUM_HOLD_BEHIND_OTHERS)}),
         "in: prefetch 0+1 to device 0", "in: record e1", "launch 9 waits for e1 of in");
  mover.backend.forbidden = true;
  EXPECT(mover.round({prefetch(3, {1}), advised(hold(4, 10, 3), DEEPUM_HOLD_BEHIND_OTHERS)}),
         "in: prefetch 1+1 to device 0", "in: record e2");
  EXPECT(mover.round({prefetch(5, {2}), hold(6, 11, 5)}), "in: prefetch 2+1 to device 0",
         "in: record e3", "launch 11 waits for e3 of in");
}

// What it faults on must not come before there is room for it.
CASE(in_lock_step_a_launch_is_held_for_what_only_waits) {
  Mover mover({.devices = 1, .lock_step = true, .fetches = false});
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1)}), "in: wait for s0@5",
         "in: record e1", "launch 9 waits for e1 of in");
}

CASE(in_lock_step_an_event_follows_each_of_what_only_waits) {
  Mover mover({.devices = 1, .lock_step = true, .fetches = false});
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.launch(8);
  mover.backend.mark();
  EXPECT(mover.round(
             {prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1), prefetch(3, {1}, {.launch = 8})}),
         "in: wait for s0@5", "in: record e1", "in: wait for s0@8", "in: record e2",
         "launch 9 waits for e1 of in");
}

CASE(in_lock_step_there_are_no_gates) {
  Mover mover({.devices = 1, .lock_step = true, .gates = true});
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}), "in: prefetch 0+1 to device 0",
         "in: record e1", "launch 9 waits for e1 of in");
}

CASE(launches_of_a_device_that_is_not_there_are_not_held) {
  Mover host(kLockStep);
  EXPECT(host.round({prefetch(1, {0}), of_device(hold(2, 9, 1), 7)}),
         "in: prefetch 0+1 to device 0");
  Mover gated(kGates);
  EXPECT(gated.round({prefetch(1, {0}), of_device(hold(2, 9, 1), 7)}),
         "in: prefetch 0+1 to device 0");
}

CASE(outside_lock_step_and_without_gates_no_launch_is_held) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}), "in: prefetch 0+1 to device 0");
}

CASE(a_hold_is_nothing_to_wait_for) {
  Mover mover;
  EXPECT(mover.round({hold(1, 9, 0), evict(2, {0}), prefetch(3, {1}, {.move = 1})}),
         "out: prefetch 0+1 to the CPU", "in: prefetch 1+1 to device 0");
}

CASE(gates_begin_with_the_first_hold) {
  Mover mover(kGates);
  EXPECT(mover.round({prefetch(1, {0})}), "in: prefetch 0+1 to device 0");
  EXPECT(mover.round({prefetch(2, {1}), hold(3, 9, 2)}, 9), "gates begin",
         "in: prefetch 1+1 to device 0", "in: record e1", "processed 9");
  EXPECT(mover.round({prefetch(4, {2}), hold(5, 10, 4)}, 10), "in: prefetch 2+1 to device 0",
         "in: record e2", "processed 10");
}

CASE(gates_are_suspended_while_no_launch_is_held) {
  Mover mover(kGates);
  EXPECT(mover.round({hold_none(1, 8)}, 8), "processed 8");
  EXPECT(mover.round({prefetch(2, {1}), hold(3, 9, 2)}, 9), "gates begin",
         "in: prefetch 1+1 to device 0", "in: record e1", "processed 9");
  EXPECT(mover.round({hold_none(4, 10)}, 10), "gates suspended", "processed 10");
  EXPECT(mover.round({prefetch(5, {2}), hold(6, 11, 5)}, 11), "gates resumed",
         "in: prefetch 2+1 to device 0", "in: record e2", "processed 11");
}

// What waits when gates are suspended waits for its moves, and no longer.
CASE(suspended_gates_open_for_launches_that_wait_at_them) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 12}};
  mover.backend.launch(5);
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1), hold_none(3, 12)}, 12),
         "gates begin", "gates suspended", "want s0", "processed 12", "gate 0: open to 8");
  mover.backend.mark();
  EXPECT(mover.round({}, 12), "in: wait for s0@5", "in: prefetch 0+1 to device 0", "in: record e1",
         "gate 0: wait for e1", "gate 0: open to 12");
}

CASE(in_lock_step_a_hold_of_no_stream_is_nothing) {
  Mover mover(kLockStep);
  EXPECT(mover.round({prefetch(1, {0}), hold_none(2, 9)}), "in: prefetch 0+1 to device 0");
}

CASE(without_gates_that_begin_no_launch_is_held) {
  Mover mover(kGates);
  mover.backend.gates_begin = false;
  mover.backend.waiters = {{0, 9}};
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}, 9), "gates begin",
         "in: prefetch 0+1 to device 0", "processed 9");
  mover.backend.gates_begin = true;
  mover.backend.waiters = {{0, 10}};
  // There is nothing for launch 9.
  EXPECT(mover.round({prefetch(3, {1}), hold(4, 10, 3)}, 10), "gates begin",
         "in: prefetch 1+1 to device 0", "in: record e1", "processed 10", "gate 0: open to 9",
         "gate 0: wait for e1", "gate 0: open to 10");
}

CASE(a_gate_opens_before_a_held_launch_then_behind_its_moves) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 9}};
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}, 12), "gates begin",
         "in: prefetch 0+1 to device 0", "in: record e1", "processed 12", "gate 0: open to 8",
         "gate 0: wait for e1", "gate 0: open to 12");
}

CASE(a_gate_opens_as_far_as_moves_are_with_the_driver) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 12}};
  mover.backend.launch(5);
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1), hold(3, 11, 1)}, 12),
         "gates begin", "want s0", "processed 12", "gate 0: open to 8");
  EXPECT(mover.round({}, 12), "want s0");
  mover.backend.mark();
  EXPECT(mover.round({}, 13), "in: wait for s0@5", "in: prefetch 0+1 to device 0", "in: record e1",
         "processed 13", "gate 0: wait for e1", "gate 0: open to 10", "gate 0: wait for e1",
         "gate 0: open to 13");
}

CASE(a_gate_waits_for_populations_too) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 9}};
  EXPECT(mover.round({populate(1, {0}), hold(2, 9, 1)}, 9), "gates begin",
         "populate: prefetch 0+1 to device 0", "populate: record e1", "processed 9",
         "gate 0: open to 8", "gate 0: wait for e1", "gate 0: open to 9");
}

CASE(a_gate_does_not_wait_for_moves_that_were_given_up) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 9}};
  mover.backend.ended = {1};
  EXPECT(mover.round({prefetch(1, {.slot = 1}), hold(2, 9, 1)}, 9), "gates begin", "1 stale",
         "processed 9", "gate 0: open to 9");
}

CASE(launches_that_are_held_for_nothing_start_once_decided) {
  Mover mover(kGates);
  mover.backend.gated = true;
  mover.backend.waiters = {{0, 5}, {2, 8}};
  EXPECT(mover.round({}, 6), "processed 6", "gate 0: open to 6", "gate 2: open to 6");
  EXPECT(mover.round({}, 7), "processed 7", "gate 2: open to 7");  // nobody waits at gate 0
  EXPECT(mover.round({}, 7));
}

CASE(streams_have_gates_of_their_own) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 12}, {2, 12}};
  mover.backend.launch(5);
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1, 2)}, 12), "gates begin",
         "want s0", "processed 12", "gate 0: open to 12", "gate 2: open to 8");
}

CASE(where_nobody_waits_at_a_gate_its_holds_are_dropped) {
  Mover mover(kGates);
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}, 9), "gates begin",
         "in: prefetch 0+1 to device 0", "in: record e1", "processed 9");
  mover.backend.waiters = {{0, 10}};
  EXPECT(mover.round({}, 10), "processed 10", "gate 0: open to 10");
}

CASE(fresh_words_of_gates_are_written_anew) {
  Mover mover(kGates);
  mover.backend.gated = true;
  mover.backend.waiters = {{0, 5}};
  EXPECT(mover.round({}, 6), "processed 6", "gate 0: open to 6");
  mover.backend.epoch = 1;
  EXPECT(mover.round({}, 6), "gate 0: open to 6");
}

CASE(gates_end_where_the_driver_refuses_to_open_one) {
  Mover mover(kGates);
  mover.backend.gated = true;
  mover.backend.waiters = {{0, 5}, {1, 5}};
  mover.backend.gates_written = false;
  EXPECT(mover.round({}, 6), "processed 6", "gate 0: open to 6", "gates end");
  EXPECT(mover.round({}, 7), "processed 7");
}

CASE(gates_end_where_one_cannot_wait_for_a_move) {
  Mover mover(kGates);
  mover.backend.waiters = {{0, 9}};
  mover.backend.gates_wait = false;
  EXPECT(mover.round({prefetch(1, {0}), hold(2, 9, 1)}, 9), "gates begin",
         "in: prefetch 0+1 to device 0", "in: record e1", "processed 9", "gate 0: open to 8",
         "gates end");
}

CASE(a_gate_does_not_wait_where_that_ties_streams) {
  Mover mover(kGates);
  mover.backend.gated = true;
  mover.backend.forbidden = true;
  mover.backend.waiters = {{0, 9}};
  EXPECT(mover.round({prefetch(1, {0}), advised(hold(2, 9, 1), DEEPUM_HOLD_BEHIND_OTHERS)}, 9),
         "in: prefetch 0+1 to device 0", "in: record e1", "processed 9", "gate 0: open to 9");
}

CASE(behind_gates_a_launch_is_held_for_what_only_waits) {
  Mover mover({.devices = 1, .gates = true, .fetches = false});
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.waiters = {{0, 9}};
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), hold(2, 9, 1)}, 9), "gates begin",
         "in: wait for s0@5", "in: record e1", "processed 9", "gate 0: open to 8",
         "gate 0: wait for e1", "gate 0: open to 9");
}
