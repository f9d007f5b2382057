// Machines in the C face: the presets, and figures of a caller's own.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

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

// Same names on both sides: one list.
template <typename To, typename From>
void copy_figures(To& to, const From& from) {
  to.memory_bytes = from.memory_bytes;
  to.presented_major = from.presented_major;
  to.presented_minor = from.presented_minor;
  to.multiprocessors = from.multiprocessors;
  to.clock_khz = from.clock_khz;
  to.fp32_gflops = from.fp32_gflops;
  to.tensor_gflops = from.tensor_gflops;
  to.memory_gbps = from.memory_gbps;
  to.fp32_sustained = from.fp32_sustained;
  to.tensor_sustained = from.tensor_sustained;
  to.memory_sustained = from.memory_sustained;
  to.h2d_gbps = from.h2d_gbps;
  to.d2h_gbps = from.d2h_gbps;
  to.copy_latency_ns = from.copy_latency_ns;
  to.host_gbps = from.host_gbps;
  to.fault_batch_ns = from.fault_batch_ns;
  to.fault_ns_per_byte = from.fault_ns_per_byte;
  to.fault_ns_per_byte_no_prefetcher = from.fault_ns_per_byte_no_prefetcher;
  to.fault_batch_no_prefetcher_ns = from.fault_batch_no_prefetcher_ns;
  to.faults_per_batch = from.faults_per_batch;
  to.eviction_ns_per_block = from.eviction_ns_per_block;
  to.min_kernel_ns = from.min_kernel_ns;
  to.launch_ns = from.launch_ns;
  to.launch_queue = from.launch_queue;
  to.migration_call_ns = from.migration_call_ns;
  to.host_function_ns = from.host_function_ns;
  to.value_wait_ns = from.value_wait_ns;
  to.block_ns = from.block_ns;
  to.both_ways = from.both_ways;
  to.discards = static_cast<decltype(to.discards)>(from.discards);
  to.queued_prefetch_faults = from.queued_prefetch_faults;
  to.blocking_calls = static_cast<decltype(to.blocking_calls)>(from.blocking_calls);
  to.decision_latency_ns = from.decision_latency_ns;
  to.host_memory_bytes = from.host_memory_bytes;
  to.disk_read_gbps = from.disk_read_gbps;
  to.disk_write_gbps = from.disk_write_gbps;
  to.disk_read_latency_ns = from.disk_read_latency_ns;
  to.disk_write_latency_ns = from.disk_write_latency_ns;
  to.disk_buffer_bytes = from.disk_buffer_bytes;
  to.host_keeps = from.host_keeps;
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
