// Discards, and what the program would have to compute again (rules 7 and 8 of mover_rules.hpp).
#include "commands_of.hpp"

CASE(a_discard_is_committed_then_waits_then_goes) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({discard(1, {3, 2}, {.launch = 5})}), "discard: commit 1",
         "discard: wait for s0@5", "discard: discard 3+2", "discard: record e1",
         "discard: 1 of 3 lies before e1");
}

CASE(a_discard_is_not_committed_before_its_markers_are_there) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({discard(1, {0}, {.launch = 5})}), "want s0");
  CHECK(mover.rules.waiting() == 1);
}

CASE(a_discard_waits_for_streams_that_the_daemon_may_not_know_of) {
  Mover mover;
  mover.backend.launch(5, 2);
  mover.backend.mark(2);
  mover.backend.unreported = 0b100;
  EXPECT(mover.round({discard(1, {0}, {.launch = 5})}), "discard: commit 1",
         "discard: wait for s2@5", "discard: discard 0+1", "discard: record e1",
         "discard: 1 of 0 lies before e1");
}

CASE(a_discard_that_is_not_committed_is_cancelled) {
  Mover mover;
  mover.backend.commits = false;
  EXPECT(mover.round({discard(1, {0}), evict(2, {1}, {.move = 1})}), "discard: do not commit 1",
         "1 cancelled", "out: prefetch 1+1 to the CPU");
}

CASE(a_discard_without_a_stream_is_cancelled_uncommitted) {
  Mover mover;
  mover.backend.prepares = false;
  EXPECT(mover.round({discard(1, {0})}), "1 cancelled");
}

CASE(a_discard_is_refused_where_there_are_none) {
  Mover mover;
  mover.backend.discards = false;
  EXPECT(mover.round({discard(1, {0})}), "1 refused");
}

CASE(a_discard_of_memory_that_has_ended_is_stale) {
  Mover mover;
  mover.backend.ended = {1};
  EXPECT(mover.round({discard(1, {.slot = 1})}), "1 stale");
}

CASE(discards_go_one_by_one) {
  Mover mover;
  EXPECT(mover.round({discard(1, {0}), discard(2, {1})}), "discard: commit 1",
         "discard: discard 0+1", "discard: record e1", "discard: 1 of 0 lies before e1",
         "discard: commit 2", "discard: discard 1+1", "discard: record e2",
         "discard: 2 of 1 lies before e2");
}

CASE(a_discard_without_an_event_is_waited_for) {
  Mover mover;
  mover.backend.makes_events = false;
  EXPECT(mover.round({discard(1, {0})}), "discard: commit 1", "discard: discard 0+1",
         "discard: synchronise", "discard: 1 of 0 lies before nothing");
}

CASE(a_discard_whose_marker_was_recorded_anew_is_committed_again) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.recorded_anew = 1;
  EXPECT(mover.round({discard(1, {0}, {.launch = 5})}), "discard: commit 1",
         "discard: wait for s0@5", "discard: 1 of 0 lies before nothing", "discard: commit 1",
         "discard: wait for s0@5", "discard: discard 0+1", "discard: record e1",
         "discard: 1 of 0 lies before e1");
}

CASE(a_discard_whose_lane_cannot_wait_is_not_made) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.waits_for_events = false;
  EXPECT(mover.round({discard(1, {0}, {.launch = 5})}), "discard: commit 1",
         "discard: 1 of 0 lies before nothing", "1 failed with error 201");
}

CASE(a_discard_that_failed_is_nothing_to_wait_for) {
  Mover mover;
  mover.backend.error = 1;
  EXPECT(mover.round({discard(1, {0})}), "discard: commit 1", "discard: discard 0+1",
         "discard: 1 of 0 lies before nothing", "1 failed with error 1");
  mover.backend.error = 0;
  EXPECT(mover.round({discard(2, {1})}), "discard: commit 2", "discard: discard 1+1",
         "discard: record e1", "discard: 2 of 1 lies before e1");
  EXPECT(mover.round({evict(3, {2}, {.move = 1})}), "out: prefetch 2+1 to the CPU");
}

CASE(discards_end_when_16_failed_in_a_row) {
  Mover mover;
  std::uint64_t id = 0;
  const auto fails = [&] {
    mover.backend.error = 1;
    return mover.round({discard(++id, {0})});
  };
  for (std::uint32_t i = 1; i < deepum::mover::kMostFailedDiscards; ++i) {
    fails();
  }
  mover.backend.error = 0;
  mover.round({discard(++id, {0})});  // one that does not fail
  for (std::uint32_t i = 1; i < deepum::mover::kMostFailedDiscards; ++i) {
    CHECK(fails().size() == 4);
  }
  EXPECT(fails(), "discard: commit 32", "discard: discard 0+1",
         "discard: 32 of 0 lies before nothing", "no more discards by error 1",
         "32 refused with error 1");
  mover.backend.error = 0;
  EXPECT(mover.round({discard(33, {0}), evict(34, {1}), prefetch(35, {2}, {.move = 33})}),
         "33 refused", "out: prefetch 1+1 to the CPU", "in: prefetch 2+1 to device 0");
}
