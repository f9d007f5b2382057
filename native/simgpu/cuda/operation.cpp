#include "operation.hpp"

#include <algorithm>
#include <cstring>

#include "graph_exec.hpp"
#include "graphs.hpp"
#include "kernel_work.hpp"
#include "pump.hpp"

namespace deepum::simgpu {
namespace {

bool on_gpu(State& state, std::uint64_t address) {
  const Allocation* const allocation = state.memory.find(address);
  return allocation != nullptr && allocation->on_gpu();
}

std::uint64_t load(const ValueWork& work) {
  if (work.wide)
    return __atomic_load_n(reinterpret_cast<std::uint64_t*>(work.address), __ATOMIC_ACQUIRE);
  return __atomic_load_n(reinterpret_cast<std::uint32_t*>(work.address), __ATOMIC_ACQUIRE);
}

void store(const ValueWork& work) {
  if (work.wide) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(work.address), work.value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(work.address),
                     static_cast<std::uint32_t>(work.value), __ATOMIC_RELEASE);
  }
}

// The memory of a pitched copy: its rows where whole 64 KiB regions lie between them, else all from
// the first to the last.
std::vector<um_model::Range> rows(const CopyWork& work, std::uint64_t address, std::uint64_t pitch,
                                  std::uint64_t slice, std::uint64_t span) {
  constexpr std::uint64_t kRegionBytes = 1u << 16, kMostRows = 4096;
  if (work.height * work.depth > kMostRows || pitch < work.width + kRegionBytes - 1)
    return {{address, span}};
  std::vector<um_model::Range> made;
  for (std::uint64_t z = 0; z < work.depth; ++z) {
    for (std::uint64_t y = 0; y < work.height; ++y)
      made.push_back({address + z * slice + y * pitch, work.width});
  }
  return made;
}

// The blocks at these addresses that nothing has used since they were handed out. Where host
// modules compute, so may the CPU: what it wrote directly is not known.
std::vector<um_model::Range> first_use(State& state,
                                       std::initializer_list<std::uint64_t> addresses) {
  std::vector<um_model::Range> unused;
  if (state.host_module_loaded) return unused;
  for (const std::uint64_t address : addresses) state.blocks.use(address, unused);
  return unused;
}

// The comparisons of CUstreamWaitValue_flags; GEQ is cyclic.
bool satisfied(const ValueWork& work) {
  const std::uint64_t now = load(work);
  const std::uint64_t mask = work.wide ? ~0ull : 0xFFFFFFFFull;
  switch (work.kind) {
    case ValueWork::wait_geq:
      return work.wide ? static_cast<std::int64_t>(now - work.value) >= 0
                       : static_cast<std::int32_t>(static_cast<std::uint32_t>(now) -
                                                   static_cast<std::uint32_t>(work.value)) >= 0;
    case ValueWork::wait_eq:
      return now == (work.value & mask);
    case ValueWork::wait_and:
      return (now & work.value) != 0;
    case ValueWork::wait_nor:
      return (~(now | work.value) & mask) != 0;
    case ValueWork::write:
      break;
  }
  return true;
}

struct Enqueue {
  State& state;
  um_model::Host host;
  um_model::Stream stream;
  int device;
  bool of_graph;

  void operator()(const EmptyWork&) const {}
  void operator()(const KernelWork& work) const {
    um_model::Kernel kernel = make_kernel(state, device, work);
    kernel.of_graph = of_graph;
    state.engine.launch(host, stream, std::move(kernel));
  }
  void operator()(const CopyWork& work) const {
    auto kept = std::make_shared<CopyWork>(work);
    const std::vector<um_model::Range> unused = first_use(state, {work.destination, work.source});
    const bool to_gpu = on_gpu(state, work.destination),
               from_gpu = work.staged.empty() && on_gpu(state, work.source);
    const int kind = from_gpu ? (to_gpu ? 3 : 2) : (to_gpu ? 1 : 0);
    State* const s = &state;
    auto to = rows(work, work.destination, work.destination_pitch, work.destination_slice,
                   work.destination_span());
    auto from = rows(work, work.source, work.source_pitch, work.source_slice, work.source_span());
    state.engine.copy(host, stream, std::move(to), std::move(from), work.bytes(), kind,
                      [s, kept, unused, on = device] {
                        if (!s->acts(on)) return;
                        for (const um_model::Range& range : unused) zero_data(*s, range);
                        copy_data(*s, *kept);
                      });
  }
  void operator()(const FillWork& work) const {
    State* const s = &state;
    const std::vector<um_model::Range> unused = first_use(state, {work.destination});
    state.engine.fill(host, stream, {work.destination, work.span()},
                      [s, work, unused, on = device] {
                        if (!s->acts(on)) return;
                        for (const um_model::Range& range : unused) zero_data(*s, range);
                        fill_data(*s, work);
                      });
  }
  void operator()(const HostWork& work) const {
    queue_host_function(state, host, stream, work.function);
  }
  void operator()(const ValueWork& work) const {
    if (work.kind == ValueWork::write) {
      state.engine.call(host, stream, [s = &state, work, on = device] {
        if (!s->acts(on)) return;
        store(work);
        s->written_pages.add({work.address, 8});
      });
    } else {
      state.engine.wait_until(host, stream, [s = &state, work, on = device] {
        return !s->acts(on) || satisfied(work);
      });
    }
  }
  void operator()(const RecordWork& work) const {
    if (!alive(state.events, work.event)) return;
    work.event->recorded = true;
    state.engine.record(host, work.event->id, stream);
  }
  void operator()(const WaitWork& work) const {
    if (alive(state.events, work.event) && work.event->recorded)
      state.engine.wait(host, stream, work.event->id);
  }
  void operator()(const ChildWork& work) const {
    enqueue_graph(state, host, stream, device, work.graph);
  }
};

}  // namespace

void enqueue(State& state, um_model::Host host, um_model::Stream stream, int device,
             const Work& work, bool of_graph) {
  std::visit(Enqueue{state, host, stream, device, of_graph}, work);
}

CUresult submit(Call& call, CUstream stream, Work work) {
  if (stream->capture != nullptr) return capture_work(call, stream, std::move(work));
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  const um_model::Stream id = enter(call, stream);
  enqueue(call.state(), call.host(), id, stream->context->device, work);
  return CUDA_SUCCESS;
}

}  // namespace deepum::simgpu
