// The C face. Nothing thrown crosses it: out of memory loses the event at hand, not the program.
#include "core.h"

#include <algorithm>
#include <exception>
#include <new>

#include "core_session.hpp"
#include "parameters.hpp"

struct deepum_core {
  explicit deepum_core(const deepum_core_settings& settings) : core(settings) {}
  deepum::core::Core core;
};

namespace {

bool in_range(const deepum_core_settings& s) {
  return s.policy <= DEEPUM_POLICY_CORRELATION &&
         s.eviction_order <= DEEPUM_EVICT_FURTHEST_NEXT_USE &&
         s.prefetch_degree <= deepum::core::kMostPrefetchDegree &&
         s.prediction <= DEEPUM_PREDICT_HISTORY && s.execution_ids >= 16 &&
         s.execution_ids <= 1u << 24 && s.execution_records >= 1 && s.execution_records <= 4096 &&
         s.block_table_rows >= 1 && s.block_table_rows <= 1u << 20 && s.block_table_ways >= 1 &&
         s.block_table_ways <= 64 && s.block_table_successors >= 1 &&
         s.block_table_successors <= 64 && s.chain_steps >= 1 && s.chain_steps <= 1u << 16 &&
         s.headroom_blocks <= 1u << 20 && s.pre_eviction <= 1 && s.advice <= DEEPUM_ADVISE_ALL &&
         s.writes <= DEEPUM_WRITES_BY_OPERATORS && s.table_mebibytes >= 1 &&
         deepum::core::in_range(s.parameters);
}

}  // namespace

extern "C" {

void deepum_core_default_settings(deepum_core_settings* settings) {
  *settings = {};
  settings->policy = DEEPUM_POLICY_CORRELATION;
  settings->eviction_order = DEEPUM_EVICT_FURTHEST_NEXT_USE;
  settings->prefetch_degree = 8192;
  settings->execution_ids = 65536;
  settings->execution_records = 16;
  settings->block_table_rows = 2048;
  settings->block_table_ways = 2;
  settings->block_table_successors = 4;
  settings->chain_steps = 8;
  settings->headroom_blocks = 16;
  settings->pre_eviction = 1;
  settings->confidence_launches = 4096;
  settings->invalidation = 1;
  settings->launch_queue = 1024;
  settings->prediction = DEEPUM_PREDICT_HISTORY;
  settings->advice = DEEPUM_ADVISE_REMOTE;
  settings->writes = DEEPUM_WRITES_BY_FAULTS;
  settings->table_mebibytes = 256;
  settings->parameters = deepum::core::default_parameters();
}

deepum_core* deepum_core_create(const deepum_core_settings* settings) {
  if (settings == nullptr || !in_range(*settings)) {
    return nullptr;
  }
  try {
    return new deepum_core(*settings);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void deepum_core_destroy(deepum_core* core) { delete core; }

uint64_t deepum_core_process(deepum_core* core, const uint8_t* events, size_t bytes) {
  try {
    return core->core.process(events, bytes);
  } catch (const std::exception&) {
    return 0;
  }
}

size_t deepum_core_take_commands(deepum_core* core, deepum_command* commands, size_t most) {
  return core->core.take_commands(commands, most);
}

uint32_t deepum_core_block_state(const deepum_core* core, uint32_t slot, uint64_t block) {
  return core->core.block_state(slot, block);
}

int deepum_core_wants_faults(const deepum_core* core) { return core->core.wants_faults() ? 1 : 0; }

int deepum_core_wants_reads(const deepum_core* core) { return core->core.wants_reads() ? 1 : 0; }

int deepum_core_wants_free_memory(const deepum_core* core) {
  return core->core.wants_free_memory() ? 1 : 0;
}

int deepum_core_follow_plan(deepum_core* core, const uint64_t* launches, size_t launch_count,
                            const deepum_planned_move* moves, size_t move_count) {
  try {
    const std::span planned(moves, move_count);
    if (!deepum::core::is_sound(planned, launch_count)) {
      return -1;
    }
    core->core.follow_plan({{launches, launches + launch_count}, {planned.begin(), planned.end()}});
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

int deepum_core_name_block(deepum_core* core, uint32_t slot, uint32_t block, uint64_t* name,
                           uint32_t* index) {
  return core->core.name_block(slot, block, *name, *index) ? 0 : -1;
}

int deepum_core_record(deepum_core* core, uint32_t launches) {
  try {
    core->core.recorder().begin(launches);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

int deepum_core_has_recorded(const deepum_core* core) {
  return core->core.recorder().complete() ? 1 : 0;
}

size_t deepum_core_recorded_launches(const deepum_core* core, deepum_recorded_launch* launches,
                                     size_t most) {
  const auto recorded = core->core.recorder().launches();
  std::copy_n(recorded.begin(), std::min(most, recorded.size()), launches);
  return recorded.size();
}

size_t deepum_core_recorded_uses(const deepum_core* core, deepum_recorded_use* uses, size_t most) {
  const auto recorded = core->core.recorder().uses();
  std::copy_n(recorded.begin(), std::min(most, recorded.size()), uses);
  return recorded.size();
}

void deepum_core_want_times(deepum_core* core, int wanted) {
  core->core.launch_clock().want(wanted != 0);
}

int deepum_core_wants_times(const deepum_core* core) {
  return core->core.launch_clock().wanted() ? 1 : 0;
}

size_t deepum_core_take_times(deepum_core* core, deepum_launch_time* times, size_t most) {
  const std::vector<deepum_launch_time> taken = core->core.launch_clock().take();
  const size_t count = std::min(most, taken.size());
  std::copy_n(taken.begin(), count, times);
  return count;
}

void deepum_core_get_statistics(const deepum_core* core, deepum_core_statistics* statistics) {
  *statistics = core->core.statistics();
}

size_t deepum_core_save_tables(const deepum_core* core, uint8_t* bytes, size_t most) {
  try {
    const std::vector<uint8_t> tables = core->core.save_tables();
    if (bytes != nullptr && tables.size() <= most) {
      std::copy(tables.begin(), tables.end(), bytes);
    }
    return tables.size();
  } catch (const std::exception&) {
    return 0;
  }
}

int deepum_core_load_tables(deepum_core* core, const uint8_t* bytes, size_t count) {
  try {
    return core->core.load_tables({bytes, count}) ? 0 : -1;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // extern "C"
