// The parts that the rules are made of, where the rules alone do not reach: LaneLedger and
// DiscardMap.
#include "discard_map.hpp"
#include "fake_backend.hpp"
#include "lane_ledger.hpp"

using deepum::mover::DiscardMap;
using deepum::mover::LaneLedger;

CASE(a_later_stream_of_an_id_is_another_stream) {
  LaneLedger lane(0);
  lane.note_wait({.stream = 3, .sequence = 9, .incarnation = 1});
  CHECK(lane.waits_for({.stream = 3, .sequence = 9, .incarnation = 1}));
  CHECK(!lane.waits_for({.stream = 3, .sequence = 7, .incarnation = 2}));
  CHECK(!lane.waits_for({.stream = 4, .sequence = 7, .incarnation = 1}));
  lane.note_wait({.stream = 3, .sequence = 12, .incarnation = 2});
  // Its last marker came along.
  CHECK(lane.waits_for({.stream = 3, .sequence = 20, .incarnation = 1}));
}

CASE(events_are_recorded_anew_once_there_are_so_many) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT, 2);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    lane.issued(id, 0, false);
    CHECK(lane.record(backend, id));
  }
  EXPECT(backend.take(), "out: record e1", "out: record e2", "out: record e1");
  CHECK(lane.event_after(backend, 1) == 2);  // further behind, never earlier
}

CASE(behind_gates_events_are_recorded_anew_once_complete) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT, 2);
  lane.keep_until_complete();
  const auto record = [&](std::uint64_t id) {
    lane.issued(id, 0, false);
    CHECK(lane.record(backend, id));
  };
  record(1);
  record(2);
  record(3);
  backend.complete("e1");
  record(4);
  EXPECT(backend.take(), "out: record e1", "out: record e2", "out: record e3", "out: record e1");
}

CASE(a_lanes_latest_command_up_to_another_is_known_by_its_events) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT, 2);
  lane.keep_until_complete();
  CHECK(lane.latest_until(9) == 0);
  lane.issued(10, 0, false);
  CHECK(lane.record(backend, 10));
  lane.issued(20, 30, 0, false);
  CHECK(lane.record(backend, 30));
  lane.issued(40, 0, false);  // without an event
  CHECK(lane.latest_until(9) == 0 && lane.latest_until(10) == 10 && lane.latest_until(19) == 10);
  CHECK(lane.latest_until(25) == 25 && lane.latest_until(39) == 30 && lane.latest_until(45) == 45);
  backend.complete("e1");
  CHECK(lane.record(backend, 40));
  CHECK(lane.latest_until(19) == 0);  // complete
}

CASE(what_is_behind_an_event_that_was_recorded_anew_is_not_known_to_be_complete) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT, 1);
  for (const std::uint64_t id : {10, 20}) {
    lane.issued(id, 0, false);
    CHECK(lane.record(backend, id));
  }
  CHECK(lane.latest_until(10) == 10 && lane.latest_until(15) == 0);
}

CASE(an_event_that_could_not_be_recorded_is_used_next) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT);
  lane.issued(1, 0, false);
  backend.records_events = false;
  CHECK(lane.event_after(backend, 1) == 0);
  backend.records_events = true;
  CHECK(lane.event_after(backend, 1) == 1);
  CHECK(lane.event_after(backend, 1) == 1);
  EXPECT(backend.take(), "out: record e1");
}

CASE(bytes_are_with_the_driver_until_an_event_behind_them_is_complete) {
  FakeBackend backend;
  LaneLedger lane(DEEPUM_DIRECTION_OUT);
  lane.issued(1, 5, true);
  CHECK(lane.record(backend, 1));
  lane.issued(2, 7, true);
  lane.issued(3, 100, false);
  CHECK(lane.outstanding() == 12 && lane.since_event() == 107);
  lane.collect(backend);
  CHECK(lane.outstanding() == 12);
  backend.complete("e1");
  lane.collect(backend);
  CHECK(lane.outstanding() == 7);
  lane.collect(backend);  // which records an event, since there is none to wait for
  backend.complete("e2");
  lane.collect(backend);
  CHECK(lane.outstanding() == 0 && lane.since_event() == 0);
  EXPECT(backend.take(), "out: record e1", "out: record e2");
}

CASE(who_uses_memory_waits_for_the_latest_discard_that_touches_it) {
  DiscardMap map;
  CHECK(map.propose(10, 10, 1) && map.propose(30, 10, 2));
  CHECK(map.latest(0, 10).id == 0 && map.latest(20, 10).id == 0);
  CHECK(map.latest(0, 11).id == 1 && map.latest(19, 1).id == 1);
  CHECK(map.latest(19, 12).id == 2);
  CHECK(map.propose(0, 5, 3) && map.latest(4, 27).id == 3);
  CHECK(map.latest(19, 1).event == 0);  // which the driver does not have yet
  CHECK(map.given(10, 1, 77) && map.latest(15, 1).event == 77);
}

CASE(a_discard_of_the_same_memory_replaces_the_earlier) {
  DiscardMap map;
  CHECK(map.propose(10, 10, 1) && map.propose(15, 10, 2));
  // Discards of a device are done in order.
  CHECK(map.latest(10, 5).id == 0 && map.latest(16, 1).id == 2);
  CHECK(!map.given(10, 1, 77));
}

CASE(a_discard_that_the_driver_did_not_get_is_nothing_to_wait_for) {
  DiscardMap map;
  CHECK(map.propose(10, 10, 1));
  CHECK(!map.given(10, 9, 77) && map.latest(10, 1).event == 0);
  CHECK(map.given(10, 1, 0) && map.latest(10, 1).id == 0);
  CHECK(!map.given(10, 1, 77));
}

CASE(what_all_streams_wait_for_is_nothing_more_to_wait_for) {
  DiscardMap map;
  CHECK(map.propose(10, 10, 1) && map.propose(30, 10, 2) && map.propose(50, 10, 3));
  map.ordered(2);
  map.ordered(1);
  CHECK(map.latest(10, 50).id == 3 && map.latest(10, 30).id == 0);
}

CASE(memory_that_ends_takes_its_discards_along) {
  DiscardMap map;
  CHECK(map.propose(10, 10, 1) && map.propose(30, 10, 2));
  map.forget(15, 5);
  CHECK(map.latest(10, 10).id == 0 && map.latest(30, 1).id == 2);
  map.clear();
  CHECK(map.latest(30, 1).id == 0);
}

CASE(there_are_no_more_discards_than_the_map_holds) {
  DiscardMap map;
  std::uint64_t id = 0;
  while (id < 1u << 20 && map.propose(2 * id, 1, id + 1)) {
    ++id;
  }
  CHECK(id == 1u << 16);
  map.ordered(id - 1);
  CHECK(map.latest(2 * id - 2, 1).id == id);
  CHECK(map.propose(2 * id, 1, id + 1) && map.latest(2 * id - 2, 3).id == id + 1);
}
