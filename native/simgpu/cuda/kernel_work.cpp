#include "kernel_work.hpp"

#include <algorithm>
#include <cstdio>

#include "truth.hpp"
#include "values.hpp"

namespace deepum::simgpu {
namespace {

// A launch as a host kernel sees it; keeps the values alive until it has run.
struct HostLaunch {
  std::vector<std::uint8_t> bytes;
  std::vector<void*> pointers;
  deepum_host_launch view{};
  const deepum_host_kernel* kernel;

  HostLaunch(const KernelWork& work, const ParameterLayout& layout)
      : bytes(work.parameters), kernel(work.function->host) {
    for (const Parameter& parameter : layout.parameters)
      pointers.push_back(bytes.data() + parameter.offset);
    std::copy(std::begin(work.grid), std::end(work.grid), view.grid);
    std::copy(std::begin(work.block), std::end(work.block), view.block);
    view.shared_bytes = work.shared_bytes;
    view.parameter_count = static_cast<std::uint32_t>(pointers.size());
    view.parameters = pointers.data();
  }
};

std::vector<deepum_host_access> accesses_of(const HostLaunch& launch) {
  if (launch.kernel->accesses == nullptr) return {};
  std::vector<deepum_host_access> accesses(64);
  for (;;) {
    const std::size_t count =
        launch.kernel->accesses(&launch.view, accesses.data(), accesses.size());
    if (count <= accesses.size()) {
      accesses.resize(count);
      return accesses;
    }
    accesses.resize(count);
  }
}

// Managed memory is what the model follows; the rest only costs bandwidth. nullptr: nothing lies
// outside live memory.
const deepum_host_access* split(State& state, const std::vector<deepum_host_access>& accesses,
                                bool reads_unwritten, um_model::Kernel& kernel) {
  for (const deepum_host_access& access : accesses) {
    if (access.bytes == 0) continue;
    const Allocation* const allocation = state.memory.find(access.address);
    if (allocation == nullptr || access.bytes > allocation->end() - access.address) return &access;
    if (allocation->kind == MemoryKind::managed) {
      const um_model::Range range{access.address, access.bytes};
      const std::uint64_t held_since = reads_unwritten ? state.blocks.held_since(range) : 0;
      kernel.accesses.push_back(
          {range, access.read != 0, access.write != 0, false, false, held_since});
    } else {
      kernel.device_bytes += access.bytes * (static_cast<unsigned>(access.read != 0) +
                                             static_cast<unsigned>(access.write != 0));
    }
  }
  return nullptr;
}

// A kernel that computes nothing: what it writes reads as zeros from then on, and so does memory
// that was handed out and not used before, whatever it was to whoever had it last. What it only may
// write (inputs, as far as is known) keeps its bytes, but where nobody tells what was handed out:
// it may be used again there.
void leave_zeros(State& state, int device, const std::vector<um_model::Access>& accesses,
                 um_model::Kernel& kernel, bool computes = false) {
  std::vector<um_model::Range> zeros;
  for (const um_model::Access& access : accesses) {
    if (!state.host_module_loaded) state.blocks.use(access.range.address, zeros);
  }
  const std::size_t unused = zeros.size();
  const auto covered = [&](um_model::Range range) {
    return std::any_of(zeros.begin(), zeros.begin() + static_cast<std::ptrdiff_t>(unused),
                       [&](um_model::Range block) {
                         return range.address >= block.address &&
                                range.address + range.bytes <= block.address + block.bytes;
                       });
  };
  for (const um_model::Access& access : accesses) {
    const bool written = access.write && !computes &&
                         (!access.written_first || !state.blocks.holds(access.range.address));
    if (written && !covered(access.range)) zeros.push_back(access.range);
  }
  if (zeros.empty()) return;
  kernel.effect = [s = &state, device, zeros = std::move(zeros)] {
    if (!s->acts(device)) return;
    for (const um_model::Range& range : zeros) zero_data(*s, range);
  };
}

um_model::Kernel make_host_kernel(State& state, int device, const KernelWork& work) {
  // A host kernel has its layout from the moment it is found.
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access)
  auto launch = std::make_shared<HostLaunch>(work, *work.function->layout);
  um_model::Kernel kernel;
  const std::vector<deepum_host_access> accesses = accesses_of(*launch);
  State* const s = &state;
  kernel.unknown = launch->kernel->unknown != 0;
  if (const deepum_host_access* const bad =
          split(state, accesses, launch->kernel->reads_unwritten != 0, kernel)) {
    // Found out when the kernel runs, as on a real card: later calls answer with the error.
    std::fprintf(stderr,
                 "deepum-sim: kernel %s touches %llu bytes at 0x%llx, outside live memory\n",
                 launch->kernel->name, static_cast<unsigned long long>(bad->bytes),
                 static_cast<unsigned long long>(bad->address));
    kernel.accesses.clear();
    kernel.effect = [s, device] { set_sticky(*s, device, CUDA_ERROR_ILLEGAL_ADDRESS); };
    return kernel;
  }
  if (launch->kernel->flops != nullptr) kernel.flops = launch->kernel->flops(&launch->view);
  kernel.matrix_units = launch->kernel->matrix_units != 0;
  if (launch->kernel->tiled != 0)
    kernel.tiles = std::uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
  if (launch->kernel->run != nullptr) {
    kernel.effect = [s, device, launch] {
      if (s->acts(device)) launch->kernel->run(&launch->view);
    };
  } else {
    std::vector<um_model::Access> all;
    all.reserve(accesses.size());
    for (const deepum_host_access& a : accesses)
      all.push_back({{a.address, a.bytes}, a.read != 0, a.write != 0});
    leave_zeros(state, device, all, kernel);
  }
  return kernel;
}

um_model::Kernel make_compiled_kernel(State& state, int device, const KernelWork& work) {
  um_model::Kernel kernel;
  kernel.unknown = true;
  if (!work.function->layout) return kernel;
  const FindAllocation find = [&state](std::uint64_t address) -> std::optional<um_model::Range> {
    const Allocation* const allocation = state.memory.find(address);
    if (allocation == nullptr || !allocation->on_gpu()) return std::nullopt;
    return allocation->range();
  };
  const LaunchView view{work.function->name,
                        *work.function->layout,
                        work.parameters.data(),
                        {work.grid[0], work.grid[1], work.grid[2]},
                        {work.block[0], work.block[1], work.block[2]},
                        state.launches};
  bool known = true;
  kernel = describe_launch(view, find, &known);
  kernel.unknown = !known;
  if (!known) state.general_kernels.insert(work.function->name);
  for (um_model::Access& access : kernel.accesses) access.estimated = true;
  std::optional<Values> values = values_of(view, find);
  leave_zeros(state, device, kernel.accesses, kernel, values.has_value());
  if (values) {
    kernel.effect = [s = &state, device, zeros = std::move(kernel.effect),
                     values = *std::move(values)] {
      if (zeros) zeros();
      if (!s->acts(device)) return;
      values.compute();
      s->written_pages.add(values.written);
    };
  }
  std::erase_if(kernel.accesses, [&](const um_model::Access& access) {
    const Allocation* const allocation = state.memory.find(access.range.address);
    if (allocation != nullptr && allocation->kind == MemoryKind::managed) return false;
    kernel.device_bytes += access.range.bytes * (static_cast<unsigned>(access.read) +
                                                 static_cast<unsigned>(access.write));
    return true;
  });
  return kernel;
}

}  // namespace

um_model::Kernel make_kernel(State& state, int device, const KernelWork& work) {
  um_model::Kernel kernel = work.function->host != nullptr
                                ? make_host_kernel(state, device, work)
                                : make_compiled_kernel(state, device, work);
  ++state.launches;
  return kernel;
}

}  // namespace deepum::simgpu
