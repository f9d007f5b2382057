// What becomes of commands that cannot be carried out.
#include "commands_of.hpp"

using deepum::mover::kMostFailures;

CASE(a_call_that_fails_is_told) {
  Mover mover;
  mover.backend.error = 2;
  EXPECT(mover.round({prefetch(1, {0}), prefetch(2, {1})}), "in: prefetch 0+2 to device 0",
         "1 failed with error 2", "2 failed with error 2");
  CHECK(mover.rules.waiting() == 0);
}

CASE(a_command_that_failed_is_nothing_to_wait_for) {
  Mover mover;
  mover.backend.error = 2;
  EXPECT(mover.round({evict(1, {0})}), "out: prefetch 0+1 to the CPU", "1 failed with error 2");
  mover.backend.error = 0;
  EXPECT(mover.round({evict(2, {1}), prefetch(3, {2}, {.move = 1})}),
         "out: prefetch 1+1 to the CPU", "in: prefetch 2+1 to device 0");
}

CASE(advice_that_fails_is_followed_by_no_move) {
  Mover mover;
  mover.backend.error = 2;
  EXPECT(mover.round({copy_out(1, {0})}), "copy: advise now 0+1: read mostly",
         "1 failed with error 2");
}

CASE(a_lane_without_a_stream_fails) {
  Mover mover;
  mover.backend.prepares = false;
  EXPECT(mover.round({prefetch(1, {0})}), "1 failed with error 201");
}

CASE(without_a_context_commands_are_cancelled) {
  Mover mover;
  mover.backend.contexts = false;
  for (std::uint64_t id = 1; id <= 2 * kMostFailures; ++id) {
    EXPECT(mover.round({prefetch(id, {0})}), std::to_string(id) + " cancelled");
  }
  mover.backend.contexts = true;  // that was no failure
  EXPECT(mover.round({prefetch(99, {0})}), "in: prefetch 0+1 to device 0");
}

CASE(after_16_failures_in_a_row_all_commands_are_cancelled) {
  Mover mover;
  mover.backend.batches = false;
  mover.backend.launch(5);
  mover.rules.accept(evict(1, {0}, {.launch = 5}));
  std::uint64_t id = 1;
  const auto give = [&](std::uint32_t commands, deepum::mover::Error error) {
    mover.backend.error = error;
    for (std::uint32_t i = 0; i < commands; ++i) {
      ++id;
      mover.rules.accept(prefetch(id, {2 * static_cast<std::uint32_t>(id)}));
    }
    return mover.round();
  };
  CHECK(give(kMostFailures - 1, 2).back() == "want s0");
  give(1, 0);  // one that does not fail
  CHECK(give(kMostFailures - 1, 2).back() == "want s0");
  EXPECT(give(2, 2), "want s0", "in: prefetch 66+1 to device 0", "turned off by error 2",
         "33 failed with error 2", "34 cancelled", "1 cancelled");
  EXPECT(mover.round({prefetch(35, {0}), discard(36, {1})}), "36 cancelled", "35 cancelled");
  CHECK(mover.rules.waiting() == 0);
}

CASE(in_lock_step_no_launch_is_held_once_the_mover_is_off) {
  Mover mover({.devices = 1, .lock_step = true});
  EXPECT(mover.round({prefetch(1, {0})}), "in: prefetch 0+1 to device 0");
  mover.backend.error = 2;
  for (std::uint64_t id = 2; id < 2 + kMostFailures; ++id) {
    mover.round({prefetch(id, {0})});
  }
  EXPECT(mover.round({hold(99, 9, 1)}));
}

CASE(a_wait_that_cannot_be_made_is_a_failure) {
  Mover mover;
  mover.backend.prepares = false;
  for (std::uint64_t id = 1; id < kMostFailures; ++id) {
    EXPECT(mover.round({prefetch(id, {0, 0})}));
  }
  EXPECT(mover.round({prefetch(99, {0, 0})}), "turned off by error 201");
}

CASE(commands_of_a_device_that_is_not_there_are_cancelled) {
  Mover mover;
  mover.backend.launch(5);
  EXPECT(mover.round({of_device(evict(1, {0}, {.launch = 5}), 1), evict(2, {1}),
                      prefetch(3, {0}, {.move = 1})}),
         "1 cancelled", "out: prefetch 1+1 to the CPU", "in: prefetch 0+1 to device 0");
}

CASE(commands_of_a_kind_that_is_not_known_are_cancelled) {
  Mover mover;
  for (const int kind : {0, static_cast<int>(DEEPUM_COMMAND_POPULATE) + 1, 255}) {
    EXPECT(mover.round({command(static_cast<deepum_command_kind>(kind), 1, {0})}), "1 cancelled");
  }
}

CASE(more_commands_than_may_wait_are_cancelled) {
  Mover mover;
  mover.backend.launch(5);
  std::uint64_t id = 0;
  while (mover.rules.waiting() == id && id < 1u << 20) {
    ++id;
    mover.rules.accept(evict(id, {0}, {.launch = 5}));
  }
  EXPECT(mover.backend.take(), "262145 cancelled");
  CHECK(mover.rules.waiting() == 1u << 18);
}
