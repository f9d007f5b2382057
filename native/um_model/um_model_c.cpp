#include "um_model.h"

#include <cstring>
#include <new>
#include <string_view>

#include "engine.hpp"

using deepum::um_model::Access;
using deepum::um_model::Advice;
using deepum::um_model::Counters;
using deepum::um_model::Engine;
using deepum::um_model::Kernel;
using deepum::um_model::Machine;
using deepum::um_model::Options;
using deepum::um_model::Range;

struct deepum_model {
  Engine engine;
};

namespace {

template <std::size_t N>
void put(char (&to)[N], std::string_view from) {
  const std::size_t length = from.copy(to, N - 1);
  to[length] = '\0';
}

}  // namespace

extern "C" {

size_t deepum_machine_count(void) { return deepum::um_model::machines().size(); }

int deepum_machine_get(size_t index, deepum_machine* out) {
  const auto machines = deepum::um_model::machines();
  if (index >= machines.size() || out == nullptr) {
    return -1;
  }
  const Machine& m = machines[index];
  *out = {};
  put(out->name, m.name);
  put(out->description, m.description);
  put(out->gpu_name, m.gpu_name);
  out->memory_bytes = m.memory_bytes;
  out->presented_major = m.presented_major;
  out->presented_minor = m.presented_minor;
  out->multiprocessors = m.multiprocessors;
  out->launch_queue = m.launch_queue;
  out->fp32_gflops = m.fp32_gflops;
  out->tensor_gflops = m.tensor_gflops;
  out->memory_gbps = m.memory_gbps;
  out->h2d_gbps = m.h2d_gbps;
  out->d2h_gbps = m.d2h_gbps;
  out->fault_batch_ns = m.fault_batch_ns;
  out->fault_ns_per_byte = m.fault_ns_per_byte;
  out->fault_batch_no_prefetcher_ns = m.fault_batch_no_prefetcher_ns;
  out->fault_ns_per_byte_no_prefetcher = m.fault_ns_per_byte_no_prefetcher;
  out->eviction_ns_per_block = m.eviction_ns_per_block;
  out->launch_ns = m.launch_ns;
  out->decision_latency_ns = m.decision_latency_ns;
  return 0;
}

deepum_model* deepum_model_create(const char* name, int devices, uint64_t memory_bytes, int density_prefetcher, uint64_t seed) {
  const Machine* machine = name != nullptr ? deepum::um_model::find_machine(name) : nullptr;
  if (machine == nullptr || devices < 1 || devices > 16) {
    return nullptr;
  }
  Options options;
  options.devices = devices;
  options.memory_bytes = memory_bytes;
  options.density_prefetcher = density_prefetcher != 0;
  options.random_eviction_seed = seed;
  return new (std::nothrow) deepum_model{Engine(*machine, options)};
}

void deepum_model_destroy(deepum_model* m) { delete m; }
uint32_t deepum_model_add_helper(deepum_model* m) { return m->engine.add_helper(); }
double deepum_model_now(deepum_model* m, uint32_t host) { return m->engine.now(host); }
void deepum_model_program_call(deepum_model* m) { m->engine.program_call(); }
void deepum_model_map_managed(deepum_model* m, uint64_t address, uint64_t bytes, int device) {
  m->engine.map_managed({address, bytes}, device);
}
void deepum_model_map_device(deepum_model* m, uint64_t address, uint64_t bytes, int device) {
  m->engine.map_device({address, bytes}, device);
}
void deepum_model_unmap(deepum_model* m, uint64_t address) { m->engine.unmap(address); }
uint64_t deepum_model_free_bytes(deepum_model* m, int device) { return m->engine.free_bytes(device); }
int deepum_model_is_resident(deepum_model* m, int device, uint64_t address) { return m->engine.is_resident(device, address) ? 1 : 0; }
uint32_t deepum_model_add_stream(deepum_model* m, int device) { return m->engine.add_stream(device); }
uint32_t deepum_model_add_event(deepum_model* m) { return m->engine.add_event(); }

void deepum_model_launch(deepum_model* m, uint32_t host, uint32_t stream, const deepum_model_access* accesses, size_t count, double flops,
                         int matrix_units) {
  Kernel kernel;
  for (size_t i = 0; i < count; ++i) {
    kernel.accesses.push_back({{accesses[i].address, accesses[i].bytes}, accesses[i].read != 0, accesses[i].write != 0});
  }
  kernel.flops = flops;
  kernel.matrix_units = matrix_units != 0;
  m->engine.launch(host, stream, std::move(kernel));
  if (host == deepum::um_model::kProgram) {
    m->engine.program_call();
  }
}

void deepum_model_copy(deepum_model* m, uint32_t host, uint32_t stream, uint64_t destination, uint64_t source, uint64_t bytes, int kind) {
  m->engine.copy(host, stream, {destination, bytes}, {source, bytes}, kind, {});
}
void deepum_model_prefetch(deepum_model* m, uint32_t host, uint32_t stream, uint64_t address, uint64_t bytes, int location) {
  const Range range{address, bytes};
  m->engine.prefetch(host, stream, {&range, 1}, location);
}
void deepum_model_discard(deepum_model* m, uint32_t host, uint32_t stream, uint64_t address, uint64_t bytes, int then_location,
                          int then_prefetch) {
  const Range range{address, bytes};
  m->engine.discard(host, stream, {&range, 1}, then_location, then_prefetch != 0);
}
void deepum_model_advise(deepum_model* m, uint32_t host, uint64_t address, uint64_t bytes, int advice, int location) {
  if (advice >= 1 && advice <= 6) {
    const Range range{address, bytes};
    m->engine.advise(host, {&range, 1}, static_cast<Advice>(advice - 1), location);
  }
}
void deepum_model_record(deepum_model* m, uint32_t host, uint32_t event, uint32_t stream) { m->engine.record(host, event, stream); }
void deepum_model_wait(deepum_model* m, uint32_t host, uint32_t stream, uint32_t event) { m->engine.wait(host, stream, event); }
int deepum_model_query(deepum_model* m, uint32_t host, uint32_t event) { return m->engine.query(host, event) ? 1 : 0; }
void deepum_model_synchronise_event(deepum_model* m, uint32_t host, uint32_t event) { m->engine.synchronise(host, event); }
void deepum_model_synchronise_stream(deepum_model* m, uint32_t host, uint32_t stream) { m->engine.synchronise_stream(host, stream); }
void deepum_model_synchronise_device(deepum_model* m, uint32_t host, int device) { m->engine.synchronise_device(host, device); }
double deepum_model_event_time(deepum_model* m, uint32_t event) { return m->engine.event_time(event); }

void deepum_model_get_counters(deepum_model* m, int device, deepum_model_counters* out) {
  static_assert(sizeof(deepum_model_counters) == sizeof(Counters), "the same members in the same order");
  const Counters counters = m->engine.counters(device);
  std::memcpy(out, &counters, sizeof counters);
}

}  // extern "C"
