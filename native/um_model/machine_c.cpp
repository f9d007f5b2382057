// Machines in the C face: the presets, and figures of a caller's own.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "figure_names.hpp"
#include "machine.hpp"
#include "machine_of.hpp"
#include "um_model.h"

using namespace deepum::um_model;

namespace {

void copy_text(char* to, std::size_t size, std::string_view text) {
  const std::size_t bytes = std::min(size - 1, text.size());
  std::memcpy(to, text.data(), bytes);
  std::memset(to + bytes, 0, size - bytes);
}

// Same names on both sides; numbers on the C face's, where the model has words.
template <typename To, typename From>
void copy_figures(To& to, const From& from) {
#define DEEPUM_FIGURE(name) to.name = static_cast<decltype(to.name)>(from.name);
  DEEPUM_FIGURES(DEEPUM_FIGURE)
#undef DEEPUM_FIGURE
}

bool sound_disk(const deepum_machine& machine) {
  const bool none = machine.disk_read_gbps == 0 && machine.disk_write_gbps == 0;
  return (none || (machine.disk_read_gbps > 0 && machine.disk_write_gbps > 0)) &&
         machine.disk_read_latency_ns >= 0 && machine.disk_write_latency_ns >= 0;
}

bool sound(const deepum_machine& machine) {
  return machine.h2d_gbps > 0 && machine.d2h_gbps > 0 && machine.memory_gbps > 0 &&
         machine.fp32_gflops > 0 && machine.tensor_gflops > 0 && machine.host_gbps > 0 &&
         machine.launch_queue > 0 && machine.faults_per_batch > 0 && machine.fp32_sustained > 0 &&
         machine.tensor_sustained > 0 && machine.memory_sustained > 0 &&
         machine.multiprocessors > 0 && machine.block_ns >= 0 && machine.both_ways >= 1 &&
         machine.discards >= 0 && machine.discards <= 2 && machine.queued_prefetch_faults >= 0 &&
         machine.queued_prefetch_faults <= 1 && machine.blocking_calls >= 0 &&
         machine.blocking_calls <= 2 && sound_disk(machine);
}

void fill(deepum_machine& to, const Machine& from) {
  copy_text(to.name, sizeof(to.name), from.name);
  copy_text(to.description, sizeof(to.description), from.description);
  copy_text(to.gpu_name, sizeof(to.gpu_name), from.gpu_name);
  copy_figures(to, from);
}

}  // namespace

std::optional<Machine> deepum::um_model::machine_of(const deepum_machine& figures) {
  if (!sound(figures)) {
    return std::nullopt;
  }
  Machine made{};
  copy_figures(made, figures);
  return made;
}

extern "C" {

size_t deepum_machine_count(void) { return machines().size(); }

int deepum_machine_get(size_t index, deepum_machine* machine) {
  if (index >= machines().size()) {
    return -1;
  }
  fill(*machine, machines()[index]);
  return 0;
}

int deepum_machine_find(const char* name, deepum_machine* machine) {
  const Machine* const found = find_machine(name);
  if (found == nullptr) {
    return -1;
  }
  fill(*machine, *found);
  return 0;
}

}  // extern "C"
