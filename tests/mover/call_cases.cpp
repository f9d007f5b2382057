// Which commands go along in one call, and what events follow them (rules 4 and 5 of
// mover_rules.hpp).
#include "commands_of.hpp"

CASE(adjacent_commands_are_one_range) {
  Mover mover;
  mover.backend.batches = false;
  EXPECT(mover.round({prefetch(1, {0}), prefetch(2, {1, 2}), caused_by(prefetch(3, {3}), 2)}),
         "in: prefetch 0+4 to device 0");
}

CASE(commands_of_other_allocations_are_not_adjacent) {
  Mover mover;
  // Where the fake's next slot begins.
  constexpr std::uint32_t kBlocksOfSlot = (1ull << 40) / kBlock;
  EXPECT(mover.round({prefetch(1, {kBlocksOfSlot - 1}), prefetch(2, {.slot = 1})}),
         "in: prefetch 524287+1, 1:0+1 to device 0");
}

CASE(others_are_one_call_where_the_driver_has_batches) {
  Mover mover;
  EXPECT(mover.round({evict(1, {0}), evict(2, {5}), evict(3, {6}), evict(4, {2})}),
         "out: prefetch 0+1, 5+2, 2+1 to the CPU");
}

CASE(others_are_calls_of_their_own_where_it_has_none) {
  Mover mover;
  mover.backend.batches = false;
  EXPECT(mover.round({evict(1, {0}), evict(2, {5})}), "out: prefetch 0+1 to the CPU",
         "out: prefetch 5+1 to the CPU");
}

CASE(a_batch_has_no_more_ranges_than_the_driver_takes) {
  Mover mover;
  for (std::uint32_t i = 0; i < deepum::mover::kMostInBatch + 1; ++i) {
    mover.rules.accept(evict(i + 1, {2 * i}));
  }
  const Log told = mover.round();
  CHECK(told.size() == 2);
  EXPECT(Log{told.back()}, "out: prefetch 128+1 to the CPU");
}

CASE(commands_of_another_kind_do_not_go_along) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), advise(2, {1}), prefetch(3, {2})}),
         "in: prefetch 0+1 to device 0", "in: advise now 1+1: read mostly",
         "in: prefetch 2+1 to device 0");
}

CASE(commands_of_a_kind_that_is_not_known_do_not_go_along) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), command(static_cast<deepum_command_kind>(200), 2, {1}),
                      prefetch(3, {2})}),
         "in: prefetch 0+1 to device 0", "2 cancelled", "in: prefetch 2+1 to device 0");
}

CASE(advice_about_other_places_does_not_go_along) {
  Mover mover({.devices = 1, .lock_step = true});
  const auto prefer = [](std::uint64_t id, std::uint32_t block, std::int32_t location) {
    deepum_command made =
        advised(advise(id, {block}, {.move = 1}), DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION);
    made.location = location;
    return made;
  };
  EXPECT(mover.round({evict(1, {9}), prefer(2, 0, 0), prefer(3, 1, 0), prefer(4, 2, -1)}),
         "out: prefetch 9+1 to the CPU", "out: record e1", "in: wait for e1",
         "in: advise in order 0+2: prefer device 0", "in: advise in order 2+1: prefer the CPU");
}

CASE(commands_with_other_advice_do_not_go_along) {
  Mover mover({.devices = 1, .lock_step = true});
  EXPECT(mover.round({evict(1, {0}), advised(evict(2, {1}), DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY)}),
         "out: prefetch 0+1 to the CPU",
         "out: advise in order 1+1: prefer the CPU, not read mostly, prefer nothing",
         "out: prefetch 1+1 to the CPU");
}

CASE(advice_in_order_goes_alone_where_no_server_gives_it) {
  Mover mover;
  EXPECT(mover.round({copy_out(1, {0}), copy_out(2, {1})}), "copy: advise now 0+1: read mostly",
         "copy: prefetch 0+1 to the CPU", "copy: advise now 1+1: read mostly",
         "copy: prefetch 1+1 to the CPU");
}

CASE(advice_in_order_goes_along_where_a_server_gives_it) {
  Mover mover({.devices = 1, .lock_step = true});
  EXPECT(mover.round({copy_out(1, {0}), copy_out(2, {1})}),
         "copy: advise in order 0+2: read mostly", "copy: prefetch 0+2 to the CPU");
}

CASE(a_command_that_needs_more_does_not_go_along) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({evict(1, {0}), evict(2, {1}, {.launch = 5}), evict(3, {2}, {.launch = 5})}),
         "out: prefetch 0+1 to the CPU", "out: wait for s0@5", "out: prefetch 1+2 to the CPU");
}

CASE(a_command_that_others_wait_for_ends_the_call) {
  Mover mover;
  EXPECT(mover.round({evict(1, {0}), evict(2, {1}), evict(3, {2}), prefetch(4, {3}, {.move = 2})}),
         "out: prefetch 0+2 to the CPU", "out: record e1", "out: prefetch 2+1 to the CPU",
         "in: wait for e1", "in: prefetch 3+1 to device 0");
}

CASE(where_calls_block_it_does_not) {
  Mover mover;
  mover.backend.deferring = false;
  mover.backend.launch(5);
  mover.backend.mark();
  mover.backend.complete("s0@5");
  mover.backend.complete("e1");
  EXPECT(mover.round({evict(1, {0}), evict(2, {1}, {.launch = 5}), prefetch(3, {3}, {.move = 1})}),
         "out: prefetch 0+2 to the CPU", "out: record e1", "in: wait for e1",
         "in: prefetch 3+1 to device 0");
}

CASE(in_lock_step_commands_of_another_launch_do_not_go_along) {
  Mover mover({.devices = 1, .lock_step = true});
  EXPECT(mover.round({caused_by(evict(1, {0}), 7), caused_by(evict(2, {1}), 7),
                      caused_by(evict(3, {2}), 8)}),
         "out: prefetch 0+2 to the CPU", "out: prefetch 2+1 to the CPU");
}

CASE(memory_that_has_ended_is_stale) {
  Mover mover;
  mover.backend.ended = {1};
  EXPECT(mover.round({prefetch(1, {0}), prefetch(2, {.slot = 1}), prefetch(3, {1})}),
         "in: prefetch 0+1 to device 0", "2 stale", "in: prefetch 1+1 to device 0");
}

CASE(what_only_waits_is_no_call) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({prefetch(1, {0, 0}, {.launch = 5}), prefetch(2, {1})}), "in: wait for s0@5",
         "in: prefetch 1+1 to device 0");
}

CASE(another_direction_waits_for_what_only_waits) {
  Mover mover;
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({prefetch(1, {0, 0}, {.launch = 5}), evict(2, {1}, {.move = 1})}),
         "in: wait for s0@5", "in: record e1", "out: wait for e1", "out: prefetch 1+1 to the CPU");
}

CASE(no_event_follows_what_its_own_direction_waits_for) {
  Mover mover;
  EXPECT(mover.round({prefetch(1, {0}), prefetch(2, {2}, {.move = 1})}),
         "in: prefetch 0+1, 2+1 to device 0");
}

CASE(prefetches_and_populations_only_wait_where_nothing_is_fetched) {
  Mover mover({.devices = 1, .fetches = false});
  mover.backend.launch(5);
  mover.backend.mark();
  EXPECT(mover.round({prefetch(1, {0}, {.launch = 5}), populate(2, {1}, {.launch = 5}),
                      evict(3, {2}), advise(4, {3})}),
         "out: prefetch 2+1 to the CPU", "populate: wait for s0@5", "in: wait for s0@5",
         "in: advise now 3+1: read mostly");
  CHECK(mover.rules.waiting() == 0);
}

CASE(an_event_follows_what_another_direction_waits_for) {
  Mover mover;
  mover.backend.batches = false;
  EXPECT(mover.round({evict(1, {0}), evict(2, {5}), prefetch(3, {1}, {.move = 1})}),
         "out: prefetch 0+1 to the CPU", "out: record e1", "out: prefetch 5+1 to the CPU",
         "in: wait for e1", "in: prefetch 1+1 to device 0");
}

CASE(an_event_comes_later_where_a_command_does) {
  Mover mover;
  EXPECT(mover.round({evict(1, {0}), evict(2, {1})}), "out: prefetch 0+2 to the CPU");
  EXPECT(mover.round({prefetch(3, {2}, {.move = 1})}), "out: record e1", "in: wait for e1",
         "in: prefetch 2+1 to device 0");
  EXPECT(mover.round({populate(4, {3}, {.move = 2})}), "populate: wait for e1",
         "populate: prefetch 3+1 to device 0");
}

CASE(an_event_follows_each_move_behind_gates) {
  Mover mover({.devices = 1, .gates = true});
  mover.backend.gated = true;
  mover.backend.batches = false;
  EXPECT(mover.round({evict(1, {0}), evict(2, {5})}), "out: prefetch 0+1 to the CPU",
         "out: record e1", "out: prefetch 5+1 to the CPU", "out: record e2");
}

// To wait for a later event than need be may be to wait for oneself.
CASE(behind_gates_no_event_is_recorded_anew_before_it_is_complete) {
  Mover mover({.devices = 1, .gates = true});
  mover.backend.gated = true;
  constexpr std::uint64_t kEvents = deepum::mover::LaneLedger::kEvents;
  for (std::uint64_t id = 1; id <= kEvents; ++id) {
    mover.round({evict(id, {0})});
  }
  EXPECT(mover.round({evict(kEvents + 1, {1})}), "out: prefetch 1+1 to the CPU",
         "out: record e4097");
  mover.backend.complete("e1");
  EXPECT(mover.round({evict(kEvents + 2, {2})}), "out: prefetch 2+1 to the CPU", "out: record e1");
}

CASE(in_lock_step_an_event_follows_32_mib) {
  Mover mover({.devices = 1, .lock_step = true});
  constexpr std::uint32_t kBlocks = deepum::mover::kEventBytes / kBlock;
  for (std::uint32_t i = 0; i <= kBlocks; ++i) {
    mover.rules.accept(evict(i + 1, {i}));
  }
  EXPECT(mover.round(), "out: prefetch 0+16 to the CPU", "out: record e1",
         "out: prefetch 16+1 to the CPU");
}

CASE(outside_lock_step_an_event_follows_a_sixteenth_of_the_limit) {
  Mover mover({.devices = 1, .handover_bytes = 64 * kBlock});
  EXPECT(mover.round({evict(1, {0, 3})}), "out: prefetch 0+3 to the CPU");
  EXPECT(mover.round({evict(2, {3})}), "out: prefetch 3+1 to the CPU", "out: record e1");
  EXPECT(mover.round({evict(3, {4, 3})}), "out: prefetch 4+3 to the CPU");
}

CASE(so_many_bytes_of_a_lane_are_with_the_driver) {
  Mover mover({.devices = 1, .handover_bytes = 4 * kBlock});
  EXPECT(mover.round(
             {prefetch(1, {0, 2}), prefetch(2, {2, 2}), prefetch(3, {4, 2}), evict(4, {8, 4})}),
         "out: prefetch 8+4 to the CPU", "out: record e1", "in: prefetch 0+4 to device 0",
         "in: record e2");
  CHECK(mover.rules.looks_again_soon());
  CHECK(mover.rules.waiting() == 1);
  EXPECT(mover.round());
  mover.backend.complete("e2");
  EXPECT(mover.round(), "in: prefetch 4+2 to device 0", "in: record e3");
  CHECK(!mover.rules.looks_again_soon());
}

CASE(a_larger_command_goes_alone) {
  Mover mover({.devices = 1, .handover_bytes = 4 * kBlock});
  EXPECT(mover.round({prefetch(1, {0, 8}), prefetch(2, {8})}), "in: prefetch 0+8 to device 0",
         "in: record e1");
  CHECK(mover.rules.looks_again_soon());
}

CASE(without_events_nothing_counts_as_with_the_driver) {
  Mover mover({.devices = 1, .handover_bytes = 4 * kBlock});
  mover.backend.records_events = false;
  EXPECT(mover.round({prefetch(1, {0, 4}), prefetch(2, {4})}), "in: prefetch 0+4 to device 0",
         "in: prefetch 4+1 to device 0");
}

CASE(in_lock_step_there_is_no_limit) {
  Mover mover({.devices = 1, .lock_step = true, .handover_bytes = 4 * kBlock});
  EXPECT(mover.round({prefetch(1, {0, 4}), prefetch(2, {8, 4})}),
         "in: prefetch 0+4, 8+4 to device 0");
}

CASE(behind_gates_there_is_no_limit) {
  Mover mover({.devices = 1, .gates = true, .handover_bytes = 4 * kBlock});
  mover.backend.gated = true;
  EXPECT(mover.round({prefetch(1, {0, 4}), prefetch(2, {8, 4})}),
         "in: prefetch 0+4, 8+4 to device 0", "in: record e1");
}

CASE(calls_of_a_command_and_those_that_go_along_are_one_operation) {
  Mover mover;
  deepum_command advised_eviction = advised(evict(4, {7}), DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY);
  mover.round({evict(1, {0}), evict(2, {1}), evict(3, {5}), advised_eviction, advise(5, {9})});
  EXPECT(mover.backend.operations, "1 and 2 more: 0+2, 5+1", "4 and 0 more: 7+1",
         "5 and 0 more: 9+1");
}

CASE(what_only_waits_is_no_operation) {
  Mover mover({.devices = 1, .fetches = false});
  mover.round({prefetch(1, {0})});
  EXPECT(mover.backend.operations);
}
