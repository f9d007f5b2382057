// The C face. Nothing thrown crosses it.
#include <algorithm>
#include <new>
#include <optional>

#include "machine_of.hpp"
#include "replay.hpp"
#include "simulate.h"

struct deepum_simulation {
  deepum_simulation(const deepum::um_model::Machine& machine,
                    const deepum_simulation_options& options, const deepum_core_settings& settings)
      : replay(machine, options, settings) {}
  deepum::simulate::Replay replay;
};

extern "C" {

deepum_simulation* deepum_simulation_create(const deepum_machine* machine,
                                            const deepum_simulation_options* options,
                                            const deepum_core_settings* settings) {
  if (options->devices < 1 || options->devices > DEEPUM_MAX_DEVICES ||
      options->marker_interval < 1 || options->mode < DEEPUM_SIMULATION_LOCK_STEP ||
      options->mode > DEEPUM_SIMULATION_FREE || !(options->decision_lag_ns >= 0) ||
      (options->mode == DEEPUM_SIMULATION_FREE &&
       options->handover_bytes < deepum::um_model::kBlockBytes)) {
    return nullptr;
  }
  try {
    const auto figures = deepum::um_model::machine_of(*machine);
    if (!figures) {
      return nullptr;
    }
    auto* const made = new deepum_simulation(*figures, *options, *settings);
    if (!made->replay.usable()) {
      delete made;
      return nullptr;
    }
    return made;
  } catch (...) {
    return nullptr;
  }
}

void deepum_simulation_destroy(deepum_simulation* simulation) { delete simulation; }

int deepum_simulation_load_tables(deepum_simulation* simulation, const uint8_t* bytes,
                                  size_t count) {
  return deepum_core_load_tables(simulation->replay.core(), bytes, count);
}

int deepum_simulation_run(deepum_simulation* simulation, const uint8_t* events, size_t event_bytes,
                          const uint8_t* work, size_t work_bytes) {
  try {
    return simulation->replay.run({events, event_bytes}, {work, work_bytes}) ? 0 : -1;
  } catch (...) {
    return -1;
  }
}

int deepum_simulation_run_launches(deepum_simulation* simulation, const uint8_t* events,
                                   size_t event_bytes, const uint8_t* work, size_t work_bytes,
                                   size_t launches, size_t* events_done, size_t* work_done) {
  try {
    deepum::simulate::Replay::Done done{};
    const bool sound =
        simulation->replay.run({events, event_bytes}, {work, work_bytes}, launches, &done);
    *events_done = done.event_bytes;
    *work_done = done.work_bytes;
    return sound ? 0 : -1;
  } catch (...) {
    return -1;
  }
}

deepum_core* deepum_simulation_core(deepum_simulation* simulation) {
  return simulation->replay.core();
}

int deepum_simulation_finish(deepum_simulation* simulation) {
  try {
    simulation->replay.finish();
    return 0;
  } catch (...) {
    return -1;
  }
}

double deepum_simulation_now(const deepum_simulation* simulation) {
  return simulation->replay.now();
}

double deepum_simulation_step_end(const deepum_simulation* simulation, size_t step) {
  return simulation->replay.step_end(step);
}

size_t deepum_simulation_marks(const deepum_simulation* simulation, deepum_simulation_mark* marks,
                               size_t most) {
  const auto& all = simulation->replay.marks();
  std::copy_n(all.begin(), std::min(most, all.size()), marks);
  return all.size();
}

size_t deepum_simulation_launches(const deepum_simulation* simulation,
                                  deepum_simulation_launch* launches, size_t most) {
  try {
    const auto all = simulation->replay.launches();
    std::copy_n(all.begin(), std::min(most, all.size()), launches);
    return all.size();
  } catch (...) {
    return 0;
  }
}

size_t deepum_simulation_take_commands(deepum_simulation* simulation, deepum_command* commands,
                                       size_t most) {
  auto& all = simulation->replay.commands();
  const size_t count = std::min(most, all.size());
  std::copy_n(all.begin(), count, commands);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

size_t deepum_simulation_take_activities(deepum_simulation* simulation, deepum_activity* activities,
                                         size_t most) {
  try {
    return simulation->replay.take_activities({activities, most});
  } catch (...) {
    return 0;
  }
}

void deepum_simulation_counters(const deepum_simulation* simulation,
                                deepum_model_counters* counters) {
  *counters = simulation->replay.counters();
}

void deepum_simulation_core_statistics(const deepum_simulation* simulation,
                                       deepum_core_statistics* statistics) {
  deepum_core_get_statistics(simulation->replay.core(), statistics);
}

}  // extern "C"
