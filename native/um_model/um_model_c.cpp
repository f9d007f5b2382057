// The engine's C face. Nothing thrown crosses it.
#include "um_model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "machine_of.hpp"

using namespace deepum::um_model;

// Numbers of streams, events and hosts are checked here: Python may pass anything.
struct deepum_model {
  deepum_model(const Machine& machine, const Options& options)
      : devices(options.devices), engine(machine, options) {}
  int devices;
  Engine engine;
  std::uint32_t streams = 0, events = 0, hosts = 1;

  bool has_device(int device) const { return device >= 0 && device < devices; }
  bool has_location(int location) const { return location == kCpu || has_device(location); }
};

namespace {

// Runs what may run out of memory; nothing is thrown across the C boundary.
template <typename Work>
int guarded(bool valid, Work work) noexcept {
  if (!valid) {
    return -1;
  }
  try {
    work();
    return 0;
  } catch (...) {
    return -1;
  }
}

std::vector<Range> ranges_of(const deepum_model_range* ranges, std::size_t count) {
  std::vector<Range> out(count);
  std::transform(ranges, ranges + count, out.begin(),
                 [](const deepum_model_range& r) { return Range{r.address, r.bytes}; });
  return out;
}

deepum_model* create(const Machine& machine, const deepum_model_options* wanted) {
  Options options;
  if (wanted != nullptr) {
    options.devices = wanted->devices;
    options.memory_bytes = wanted->memory_bytes;
    options.density_prefetcher = wanted->density_prefetcher != 0;
    options.random_eviction_seed = wanted->random_eviction_seed;
  }
  if (options.devices < 1 || options.devices > 32) {
    return nullptr;
  }
  return new deepum_model(machine, options);
}

bool works(const deepum_model* e, std::uint32_t host, std::uint32_t stream) {
  return host < e->hosts && stream < e->streams;
}
bool is_advice(std::int32_t advice) {
  return advice >= DEEPUM_MODEL_READ_MOSTLY && advice <= DEEPUM_MODEL_UNSET_ACCESSED_BY;
}
bool sound(std::uint64_t address, std::uint64_t bytes) {
  return bytes != 0 && address + bytes > address && address + bytes < 1ull << 56;
}

}  // namespace

extern "C" {

deepum_model* deepum_model_create(const char* machine, const deepum_model_options* options) {
  deepum_model* made = nullptr;
  const Machine* const found = find_machine(machine);
  guarded(found != nullptr, [&] { made = create(*found, options); });
  return made;
}

deepum_model* deepum_model_create_with(const deepum_machine* machine,
                                       const deepum_model_options* options) {
  deepum_model* made = nullptr;
  const std::optional<Machine> figures = machine_of(*machine);
  guarded(figures.has_value(), [&] { made = create(*figures, options); });
  return made;
}

void deepum_model_destroy(deepum_model* engine) { delete engine; }

uint32_t deepum_model_add_helper(deepum_model* engine) {
  engine->hosts = engine->engine.add_helper() + 1;
  return engine->hosts - 1;
}
double deepum_model_now(const deepum_model* engine, uint32_t host) {
  return engine->engine.now(host);
}
void deepum_model_spend(deepum_model* engine, uint32_t host, double ns) {
  engine->engine.spend(host, ns);
}
void deepum_model_program_call(deepum_model* engine) { engine->engine.program_call(); }

int deepum_model_map_managed(deepum_model* e, uint64_t address, uint64_t bytes, int32_t device) {
  return guarded(e->has_device(device) && sound(address, bytes),
                 [&] { e->engine.map_managed({address, bytes}, device); });
}
int deepum_model_map_device(deepum_model* e, uint64_t address, uint64_t bytes, int32_t device) {
  return guarded(e->has_device(device) && sound(address, bytes),
                 [&] { e->engine.map_device({address, bytes}, device); });
}
void deepum_model_unmap(deepum_model* e, uint64_t address) {
  guarded(true, [&] { e->engine.unmap(address); });
}
uint64_t deepum_model_free_bytes(const deepum_model* e, int32_t device) {
  return e->has_device(device) ? e->engine.free_bytes(device) : 0;
}
int deepum_model_is_resident(const deepum_model* e, int32_t device, uint64_t address) {
  return e->has_device(device) && e->engine.is_resident(device, address);
}

int deepum_model_pin(deepum_model* e, uint64_t bytes) {
  return guarded(e->engine.holds(0, bytes, 0), [&] { e->engine.pin(bytes); });
}
int deepum_model_unpin(deepum_model* e, uint64_t bytes) {
  return guarded(bytes <= e->engine.pinned(), [&] { e->engine.unpin(bytes); });
}
int deepum_model_holds(const deepum_model* e, uint64_t managed, uint64_t pinned) {
  return e->engine.holds(managed, pinned, 0);
}
int deepum_model_get_content(const deepum_model* e, uint64_t address, deepum_model_content* out) {
  Engine::Content c{};
  if (!e->engine.content(address, c)) {
    return -1;
  }
  *out = {c.device,  c.on_device, c.on_host,        c.arriving,
          c.leaving, c.discarded, c.in_host_memory, c.on_disk};
  return 0;
}

int deepum_model_add_stream(deepum_model* e, int32_t device) {
  int made = -1;
  guarded(e->has_device(device), [&] { made = static_cast<int>(e->engine.add_stream(device)); });
  e->streams = std::max(e->streams, static_cast<std::uint32_t>(made + 1));
  return made;
}
void deepum_model_remove_stream(deepum_model* e, uint32_t stream) {
  guarded(stream < e->streams, [&] { e->engine.remove_stream(stream); });
}
int deepum_model_add_event(deepum_model* e) {
  int made = -1;
  guarded(true, [&] { made = static_cast<int>(e->engine.add_event()); });
  e->events = std::max(e->events, static_cast<std::uint32_t>(made + 1));
  return made;
}
void deepum_model_remove_event(deepum_model* e, uint32_t event) {
  guarded(event < e->events, [&] { e->engine.remove_event(event); });
}

int deepum_model_launch(deepum_model* e, uint32_t host, uint32_t stream,
                        const deepum_model_access* accesses, size_t count, double flops,
                        int32_t matrix_units, uint64_t device_bytes, double peak_fraction,
                        uint64_t tiles) {
  return guarded(works(e, host, stream) && peak_fraction >= 0 && peak_fraction <= 1, [&] {
    Kernel kernel;
    kernel.flops = flops;
    kernel.matrix_units = matrix_units != 0;
    kernel.device_bytes = device_bytes;
    kernel.peak_fraction = peak_fraction;
    kernel.tiles = tiles;
    for (size_t i = 0; i < count; ++i) {
      kernel.accesses.push_back({{accesses[i].address, accesses[i].bytes},
                                 accesses[i].read != 0,
                                 accesses[i].write != 0});
    }
    e->engine.launch(host, stream, std::move(kernel));
  });
}
int deepum_model_copy(deepum_model* e, uint32_t host, uint32_t stream,
                      deepum_model_range destination, deepum_model_range source, int32_t kind) {
  return guarded(
      works(e, host, stream) && kind >= DEEPUM_MODEL_COPY_H2H && kind <= DEEPUM_MODEL_COPY_D2D,
      [&] {
        e->engine.copy(host, stream, {destination.address, destination.bytes},
                       {source.address, source.bytes}, kind, {});
      });
}
int deepum_model_fill(deepum_model* e, uint32_t host, uint32_t stream,
                      deepum_model_range destination) {
  return guarded(works(e, host, stream), [&] {
    e->engine.fill(host, stream, {destination.address, destination.bytes}, {});
  });
}
int deepum_model_prefetch(deepum_model* e, uint32_t host, uint32_t stream,
                          const deepum_model_range* ranges, size_t count, int32_t location) {
  return guarded(works(e, host, stream) && e->has_location(location),
                 [&] { e->engine.prefetch(host, stream, ranges_of(ranges, count), location); });
}
int deepum_model_discard(deepum_model* e, uint32_t host, uint32_t stream,
                         const deepum_model_range* ranges, size_t count, int32_t then_location,
                         int32_t then_prefetch) {
  return guarded(works(e, host, stream) && e->has_location(then_location), [&] {
    e->engine.discard(host, stream, ranges_of(ranges, count), then_location, then_prefetch != 0);
  });
}
int deepum_model_advise(deepum_model* e, uint32_t host, const deepum_model_range* ranges,
                        size_t count, int32_t advice, int32_t location) {
  return guarded(host < e->hosts && is_advice(advice) && e->has_location(location), [&] {
    e->engine.advise(host, ranges_of(ranges, count), static_cast<Advice>(advice), location);
  });
}
int deepum_model_serve_advice(deepum_model* e, uint32_t host, uint32_t stream,
                              const deepum_model_range* ranges, size_t count, int32_t advice,
                              int32_t location) {
  return guarded(works(e, host, stream) && is_advice(advice) && e->has_location(location), [&] {
    e->engine.serve(host, stream, [e, advised = ranges_of(ranges, count), advice, location] {
      e->engine.advise(kServer, advised, static_cast<Advice>(advice), location);
    });
  });
}
int deepum_model_record(deepum_model* e, uint32_t host, uint32_t event, uint32_t stream) {
  return guarded(works(e, host, stream) && event < e->events,
                 [&] { e->engine.record(host, event, stream); });
}
int deepum_model_wait(deepum_model* e, uint32_t host, uint32_t stream, uint32_t event) {
  return guarded(works(e, host, stream) && event < e->events,
                 [&] { e->engine.wait(host, stream, event); });
}
int deepum_model_cpu_access(deepum_model* e, uint32_t host, deepum_model_range range,
                            int32_t write) {
  return guarded(host < e->hosts,
                 [&] { e->engine.cpu_access(host, {range.address, range.bytes}, write != 0); });
}

int deepum_model_query(deepum_model* e, uint32_t host, uint32_t event) {
  int answer = 0;
  guarded(host < e->hosts && event < e->events, [&] { answer = e->engine.query(host, event); });
  return answer;
}
int deepum_model_query_stream(deepum_model* e, uint32_t host, uint32_t stream) {
  int answer = 0;
  guarded(works(e, host, stream), [&] { answer = e->engine.query_stream(host, stream); });
  return answer;
}
int deepum_model_synchronise(deepum_model* e, uint32_t host, uint32_t event) {
  return guarded(host < e->hosts && event < e->events, [&] { e->engine.synchronise(host, event); });
}
int deepum_model_synchronise_stream(deepum_model* e, uint32_t host, uint32_t stream) {
  return guarded(works(e, host, stream), [&] { e->engine.synchronise_stream(host, stream); });
}
int deepum_model_synchronise_device(deepum_model* e, uint32_t host, int32_t device) {
  return guarded(host < e->hosts && e->has_device(device),
                 [&] { e->engine.synchronise_device(host, device); });
}
double deepum_model_event_time(const deepum_model* e, uint32_t event) {
  return event < e->events ? e->engine.event_time(event) : std::numeric_limits<double>::quiet_NaN();
}

int deepum_model_get_counters(const deepum_model* e, int32_t device, deepum_model_counters* out) {
  if (!e->has_location(device)) {
    return -1;
  }
  const Counters c = e->engine.counters(device);
  static_assert(sizeof(deepum_model_counters) == sizeof(Counters),
                "the same fields in the same order");
  std::memcpy(out, &c, sizeof(c));
  return 0;
}
size_t deepum_model_violation_count(const deepum_model* e) { return e->engine.violations().size(); }
uint64_t deepum_model_faults_dropped(const deepum_model* e) { return e->engine.faults_dropped(); }
size_t deepum_model_take_faults(deepum_model* e, deepum_model_fault* faults, size_t most) {
  size_t taken = 0;
  guarded(true, [&] {
    for (const Fault& fault : e->engine.take_faults()) {
      if (taken < most) {
        faults[taken++] = {fault.address, fault.faults, fault.device, fault.write ? 1 : 0, 0,
                           fault.start,   fault.end};
      }
    }
  });
  return taken;
}

}  // extern "C"
