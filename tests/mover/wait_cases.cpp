// What a lane waits for, and where the command waits in its place (rule 3 of mover_rules.hpp).
#include "commands_of.hpp"

CASE(a_lane_waits_for_a_marker_once) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU");
  EXPECT(mover.round({evict(2, {1}, {.launch = 5})}), "out: prefetch 1+1 to the CPU");
  EXPECT(mover.round({prefetch(3, {2}, {.launch = 5})}), "in: wait for s0@5",
         "in: prefetch 2+1 to device 0");
}

CASE(a_lane_that_waits_for_a_later_marker_waits_for_the_earlier) {
  Mover mover;
  for (const std::uint64_t sequence : {5, 8}) {
    mover.backend.launch(sequence);
    mover.backend.mark();
  }
  EXPECT(mover.round({evict(1, {0}, {.launch = 8})}), "out: wait for s0@8",
         "out: prefetch 0+1 to the CPU");
  EXPECT(mover.round({evict(2, {1}, {.launch = 5})}), "out: prefetch 1+1 to the CPU");
  mover.backend.launch(9);
  mover.backend.mark();
  EXPECT(mover.round({evict(3, {2}, {.launch = 9})}), "out: wait for s0@9",
         "out: prefetch 2+1 to the CPU");
}

CASE(a_lane_that_waits_for_a_later_command_waits_for_the_earlier) {
  Mover mover;
  EXPECT(mover.round({evict(1, {0}), evict(2, {1}), prefetch(3, {2}, {.move = 2})}),
         "out: prefetch 0+2 to the CPU", "out: record e1", "in: wait for e1",
         "in: prefetch 2+1 to device 0");
  EXPECT(mover.round({prefetch(4, {3}, {.move = 1})}), "in: prefetch 3+1 to device 0");
  EXPECT(mover.round({evict(5, {4}), prefetch(6, {5}, {.move = 5})}),
         "out: prefetch 4+1 to the CPU", "out: record e2", "in: wait for e2",
         "in: prefetch 5+1 to device 0");
}

CASE(a_context_that_ended_takes_its_waits_along) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU");
  mover.rules.forget_streams(0);
  EXPECT(mover.round({evict(2, {1}, {.launch = 5}), prefetch(3, {2}, {.move = 1})}),
         "out: wait for s0@5", "out: prefetch 1+1 to the CPU", "out: record e1", "in: wait for e1",
         "in: prefetch 2+1 to device 0");
  mover.rules.forget_streams(0);
  // Which the new stream never had.
  EXPECT(mover.round({prefetch(4, {3}, {.move = 2})}), "in: prefetch 3+1 to device 0");
}

CASE(a_marker_that_was_recorded_anew_is_waited_for_anew) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.recorded_anew = 1;
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "out: wait for s0@5", "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU");
}

CASE(a_fence_waits_for_a_marker_that_was_recorded_anew) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.recorded_anew = 1;
  EXPECT(mover.round({prefetch(1, {0, 0}, {.launch = 5})}), "in: wait for s0@5",
         "in: wait for s0@5");
  CHECK(mover.rules.waiting() == 0);
}

CASE(nothing_goes_where_the_lane_cannot_be_made_to_wait) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.waits_for_events = false;
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "1 failed with error 201");
}

CASE(nothing_goes_where_what_it_follows_has_no_event) {
  Mover mover;
  mover.backend.makes_events = false;
  EXPECT(mover.round({evict(1, {0}), prefetch(2, {1}, {.move = 1})}),
         "out: prefetch 0+1 to the CPU", "2 failed with error 201");
}

CASE(where_calls_block_a_command_stays_until_what_it_follows_is_done) {
  Mover mover;
  mover.backend.deferring = false;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}));
  CHECK(mover.rules.looks_again_soon());
  mover.backend.complete("s0@5");
  EXPECT(mover.round({prefetch(2, {1}, {.move = 1})}), "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU", "out: record e1");
  CHECK(mover.rules.looks_again_soon());
  mover.backend.complete("e1");
  EXPECT(mover.round(), "in: wait for e1", "in: prefetch 1+1 to device 0");
  CHECK(!mover.rules.looks_again_soon());
}

CASE(where_calls_block_a_command_stays_until_its_lane_is_idle) {
  Mover mover;
  mover.backend.deferring = false;
  mover.backend.busy = {DEEPUM_DIRECTION_OUT};
  EXPECT(mover.round({evict(1, {0}), prefetch(2, {1})}), "in: prefetch 1+1 to device 0");
  CHECK(mover.rules.looks_again_soon());
  mover.backend.busy.clear();
  EXPECT(mover.round(), "out: prefetch 0+1 to the CPU");
}

CASE(where_calls_block_a_discard_stays_as_well) {
  Mover mover;
  mover.backend.deferring = false;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({discard(1, {0}, {.launch = 5})}));
  CHECK(mover.rules.looks_again_soon());
  mover.backend.complete("s0@5");
  EXPECT(mover.round(), "discard: commit 1", "discard: wait for s0@5", "discard: discard 0+1",
         "discard: record e1", "discard: 1 of 0 lies before e1");
}

CASE(in_lock_step_no_command_stays_for_calls_that_block) {
  Mover mover({.devices = 1, .lock_step = true});
  mover.backend.deferring = false;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({evict(1, {0}, {.launch = 5})}), "out: wait for s0@5",
         "out: prefetch 0+1 to the CPU");
}

CASE(advice_that_follows_nothing_is_given_when_its_turn_comes) {
  Mover mover;
  mover.backend.deferring = false;
  mover.backend.busy = {DEEPUM_DIRECTION_IN};
  EXPECT(mover.round({advise(1, {0, 2})}), "in: advise now 0+2: read mostly");
}

CASE(advice_that_follows_nothing_needs_no_server) {
  Mover mover({.devices = 1, .lock_step = true});
  EXPECT(mover.round({advise(1, {0}), advise(2, {1})}), "in: advise now 0+1: read mostly",
         "in: advise now 1+1: read mostly");
}

CASE(advice_in_order_stays_where_no_server_gives_it) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({copy_out(1, {0}, {.launch = 5}), prefetch(2, {1}, {.launch = 5})}),
         "in: wait for s0@5", "in: prefetch 1+1 to device 0");
  CHECK(mover.rules.looks_again_soon());
  mover.backend.complete("s0@5");
  EXPECT(mover.round(), "copy: wait for s0@5", "copy: advise now 0+1: read mostly",
         "copy: prefetch 0+1 to the CPU");
}

CASE(a_server_gives_advice_in_order_in_lock_step) {
  Mover mover({.devices = 1, .lock_step = true});
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({copy_out(1, {0}, {.launch = 5})}), "copy: wait for s0@5",
         "copy: advise in order 0+1: read mostly", "copy: prefetch 0+1 to the CPU");
}

CASE(a_server_gives_advice_in_order_behind_gates) {
  Mover mover({.devices = 1, .gates = true});
  mover.backend.gated = true;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({copy_out(1, {0}, {.launch = 5})}), "copy: wait for s0@5",
         "copy: advise in order 0+1: read mostly", "copy: prefetch 0+1 to the CPU",
         "copy: record e1");
}

CASE(no_server_gives_advice_behind_gates_where_calls_block) {
  Mover mover({.devices = 1, .gates = true});
  mover.backend.gated = true;
  mover.backend.deferring = false;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({copy_out(1, {0}, {.launch = 5})}));
  CHECK(mover.rules.looks_again_soon());
  mover.backend.complete("s0@5");
  EXPECT(mover.round(), "copy: wait for s0@5", "copy: advise now 0+1: read mostly",
         "copy: prefetch 0+1 to the CPU", "copy: record e1");
}

CASE(an_eviction_of_what_is_read_mostly_advises_first) {
  Mover mover;
  EXPECT(mover.round({advised(evict(1, {0}), DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY)}),
         "out: advise now 0+1: prefer the CPU, not read mostly, prefer nothing",
         "out: prefetch 0+1 to the CPU");
}
