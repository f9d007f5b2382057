// Which command goes first, and which has to stay (rules 1 and 2 of mover_rules.hpp).
#include "commands_of.hpp"

CASE(a_direction_keeps_its_order) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), prefetch(2, {7})}), "want s0");
  CHECK(mover.rules.waiting() == 2);
  mover.backend.mark();
  mover.backend.batches = false;
  EXPECT(mover.round(), "in: wait for s0@5", "in: prefetch 0+1 to device 0",
         "in: prefetch 7+1 to device 0");
  CHECK(mover.rules.waiting() == 0);
}

CASE(discards_go_first_then_what_leaves_then_what_comes) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), populate(2, {1}), copy_out(3, {2}),
                      command(DEEPUM_COMMAND_COLLAPSE, 4, {3}), evict(5, {4}),
                      command(DEEPUM_COMMAND_DROP, 6, {5}), discard(7, {6})}),
         "discard: commit 7", "discard: discard 6+1", "discard: record e1",
         "discard: 7 of 6 lies before e1",
         "drop: advise now 5+1: prefer the CPU, not read mostly, prefer nothing",
         "drop: prefetch 5+1 to the CPU", "drop: advise now 5+1: read mostly",
         "out: prefetch 4+1 to the CPU", "populate: prefetch 1+1 to device 0",
         "in: prefetch 0+1 to device 0", "copy: advise now 2+1: read mostly",
         "copy: prefetch 2+1 to the CPU",
         "collapse: advise now 3+1: prefer device 0, not read mostly, prefer nothing");
}

CASE(a_round_goes_on_as_long_as_one_direction_does) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), discard(2, {1}, {.move = 1}), evict(3, {2}, {.move = 2})}),
         "in: prefetch 0+1 to device 0", "in: record e1", "discard: commit 2",
         "discard: wait for e1", "discard: discard 1+1", "discard: record e2",
         "discard: 2 of 1 lies before e2", "out: wait for e2", "out: prefetch 2+1 to the CPU");
}

CASE(directions_of_other_devices_are_others) {
  Mover mover({.devices = 2});
  EXPECT(mover.round({prefetch(1, {0}), of_device(prefetch(2, {1}), 1)}),
         "in: prefetch 0+1 to device 0", "in of device 1: prefetch 1+1 to device 1");
}

CASE(a_command_waits_for_markers_of_all_its_streams) {
  Mover mover;
  mover.backend.launch(4, 0);
  mover.backend.launch(5, 3);
  mover.backend.mark(0);
  EXPECT(mover.round({evict(1, {0}, {.launch = 5, .streams = 0b1001})}), "want s3");
  CHECK(mover.rules.wants_marker());
  mover.backend.mark(3);
  EXPECT(mover.round(), "out: wait for s0@4", "out: wait for s3@5", "out: prefetch 0+1 to the CPU");
  CHECK(!mover.rules.wants_marker());
}

CASE(a_command_that_follows_no_launch_waits_for_no_marker) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({evict(1, {0})}), "out: prefetch 0+1 to the CPU");
}

CASE(in_lock_step_a_marker_is_recorded_if_need_be) {
  Mover mover({.devices = 1, .lock_step = true});
  mover.backend.launch(5);
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "record s0", "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU");
}

CASE(in_lock_step_a_marker_that_cannot_be_recorded_is_waited_for) {
  Mover mover({.devices = 1, .lock_step = true});
  mover.backend.launch(5);
  mover.backend.records_markers = false;
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "want s0");
  CHECK(mover.rules.wants_marker());
}

CASE(outside_lock_step_no_marker_is_recorded) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "want s0");
}

CASE(what_stays_holds_up_its_own_direction_alone) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({evict(1, {0}, {.launch = 5}), evict(2, {1}), prefetch(3, {2})}), "want s0",
         "in: prefetch 2+1 to device 0", "want s0");
  CHECK(mover.rules.waiting() == 2);
}

CASE(a_command_goes_once_what_it_follows_has_been_issued) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({evict(1, {0}, {.launch = 5}), prefetch(2, {1}, {.move = 1})}), "want s0");
  mover.backend.mark();
  EXPECT(mover.round(), "out: wait for s0@5", "out: prefetch 0+1 to the CPU", "out: record e1",
         "in: wait for e1", "in: prefetch 1+1 to device 0");
}

CASE(a_command_may_follow_one_of_another_device) {
  Mover mover({.devices = 2});
  mover.backend.launch(5);
  EXPECT(mover.round({of_device(evict(1, {0}, {.launch = 5}), 1), prefetch(2, {1}, {.move = 1})}),
         "want s0");
  mover.backend.mark();
  EXPECT(mover.round(), "out of device 1: wait for s0@5",
         "out of device 1: prefetch 0+1 to the CPU", "out of device 1: record e1",
         "in: wait for e1", "in: prefetch 1+1 to device 0");
}

CASE(what_was_given_up_is_nothing_to_wait_for) {
  Mover mover;
  mover.backend.ended = {1};
  EXPECT(mover.round({evict(1, {.slot = 1}), evict(2, {0}), prefetch(3, {1}, {.move = 1})}),
         "1 stale", "out: prefetch 0+1 to the CPU", "in: prefetch 1+1 to device 0");
}

CASE(a_command_follows_earlier_ones_only) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({prefetch(1, {1}, {.move = 2}), evict(2, {0}, {.launch = 5})}), "want s0",
         "in: prefetch 1+1 to device 0", "want s0");
}

// Only so many are kept in mind: a command that follows an older one waits for all directions of
// its device that had one as late.
CASE(what_was_issued_long_ago_is_looked_for_in_all_directions) {
  Mover mover;
  constexpr std::uint64_t kLater = 1 + deepum::mover::SettledMoves::kKept;
  EXPECT(mover.round({evict(1, {0}), evict(2, {1})}), "out: prefetch 0+2 to the CPU");
  EXPECT(mover.round({hold(kLater, 9, 0)}));
  EXPECT(mover.round({prefetch(kLater + 1, {2}, {.move = 1})}), "out: record e1", "in: wait for e1",
         "in: prefetch 2+1 to device 0");
}

// It may wait for launches that wait for the command at hand.
CASE(what_a_direction_had_since_is_not_waited_for) {
  Mover mover;
  constexpr std::uint64_t kLater = 1 + deepum::mover::SettledMoves::kKept;
  EXPECT(mover.round({evict(1, {0})}), "out: prefetch 0+1 to the CPU");
  EXPECT(mover.round({hold(kLater, 9, 0)}));
  EXPECT(mover.round({prefetch(kLater + 1, {3})}), "in: prefetch 3+1 to device 0");
  EXPECT(mover.round({populate(kLater + 2, {2}, {.move = 1})}), "out: record e1",
         "populate: wait for e1", "populate: prefetch 2+1 to device 0");
}
