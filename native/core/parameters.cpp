#include "parameters.hpp"

#include <algorithm>
#include <bit>

namespace deepum::core {

deepum_core_parameters default_parameters() {
  return {
      .command = {.most_blocks = 8},
      .residency = {.doubt_share = 24,
                    .free_doubts = 5,
                    .shaken_blocks = 16,
                    .least_doubt = 16,
                    .worth_reading = 8,
                    .reading_tolerance = 8,
                    .loss_share = 64,
                    .least_share = 2,
                    .least_loss_window = 256},
      .regularity = {.burst_gap = 16, .period_tolerance = 8, .most_irregular = 6},
      .prediction = {.trust = 2,
                     .recognised = 32,
                     .skipped = 64,
                     .skipped_kernels = 8,
                     .known_agreement = 3,
                     .astray = 20,
                     .inserted = 8},
      .iteration = {.least_period = 256, .settled_after = 256},
      .planner = {.soon_after_wait = 8,
                  .short_queue = 64,
                  .spare_ahead = 3072,
                  .idle_share = 64,
                  .least_idle = 2,
                  .evicted_ahead = 8},
      .window = {.initial_share = 2, .narrowing = 4, .least_share = 8},
      .growth = {.sweep_share = 16, .lower_share = 8, .fallen = 4, .soon = 64},
      .eviction = {.batch = 8,
                   .headroom_share = 8,
                   .soon_share = 64,
                   .prefetched_share = 8,
                   .prefetched_little = 32,
                   .spared_share = 16},
      .order = {.late_scan = 4096,
                .victim_scan = 4096,
                .expected_scan = 256,
                .cool_down_blocks = 32,
                .least_launches = 2,
                .least_blocks = 32,
                .many_launches = 32,
                .blocks_share = 16,
                .dying = 16,
                .clean_far_share = 8},
      .invalidation = {.shortest_pause = 64, .longest_pause = 1 << 20},
      .copy_back = {.settled_share = 20,
                    .quiet_share = 8,
                    .scan = 256,
                    .haste = 2,
                    .lasting_share = 32,
                    .most_wasted = 64},
      .trial = {.learning = 9,
                .settling = 3,
                .measured = 3,
                .alike_share = 8,
                .most_changes = 64,
                .most_trials = 8,
                .better_share = 64,
                .hopeless = 2},
      .host = {.least_table = 4,
               .proven_sparse = 2,
               .least_tensor = 4,
               .least_part = 16,
               .least_iteration = 64,
               .stable = 3,
               .patience = 16},
  };
}

bool in_range(const deepum_core_parameters& parameters) {
  const auto values = std::bit_cast<ParameterValues>(parameters);
  return std::ranges::all_of(
      values, [](std::uint32_t value) { return value >= 1 && value <= kMostOfParameter; });
}

}  // namespace deepum::core
