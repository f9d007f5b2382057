#include "kernel_work.hpp"

#include <algorithm>
#include <cstdio>

#include "truth.hpp"

namespace deepum::simgpu {
namespace {

// A launch as a host kernel sees it; keeps the values alive until it has run.
struct HostLaunch {
  std::vector<std::uint8_t> bytes;
  std::vector<void*> pointers;
  deepum_host_launch view{};
  const deepum_host_kernel* kernel;

  HostLaunch(const KernelWork& work, const ParameterLayout& layout) : bytes(work.parameters), kernel(work.function->host) {
    for (const Parameter& parameter : layout.parameters) pointers.push_back(bytes.data() + parameter.offset);
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
    const std::size_t count = launch.kernel->accesses(&launch.view, accesses.data(), accesses.size());
    if (count <= accesses.size()) {
      accesses.resize(count);
      return accesses;
    }
    accesses.resize(count);
  }
}

// Managed memory is what the model follows; the rest only costs bandwidth. nullptr: nothing lies outside live memory.
const deepum_host_access* split(State& state, const std::vector<deepum_host_access>& accesses, std::uint64_t held_since,
                                um_model::Kernel& kernel) {
  for (const deepum_host_access& access : accesses) {
    if (access.bytes == 0) continue;
    const Allocation* const allocation = state.memory.find(access.address);
    if (allocation == nullptr || access.bytes > allocation->end() - access.address) return &access;
    if (allocation->kind == MemoryKind::managed) {
      kernel.accesses.push_back({{access.address, access.bytes}, access.read != 0, access.write != 0, false, false, held_since});
    } else {
      kernel.device_bytes += access.bytes * (static_cast<unsigned>(access.read != 0) + static_cast<unsigned>(access.write != 0));
    }
  }
  return nullptr;
}

um_model::Kernel make_host_kernel(State& state, int device, const KernelWork& work) {
  // A host kernel has its layout from the moment it is found. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
  auto launch = std::make_shared<HostLaunch>(work, *work.function->layout);
  um_model::Kernel kernel;
  const std::vector<deepum_host_access> accesses = accesses_of(*launch);
  State* const s = &state;
  const std::uint64_t held_since = launch->kernel->reads_unwritten != 0 ? um_model::kNotKnown : 0;
  kernel.unknown = launch->kernel->unknown != 0;
  if (const deepum_host_access* const bad = split(state, accesses, held_since, kernel)) {
    // Found out when the kernel runs, as on a real card: later calls answer with the error.
    std::fprintf(stderr, "deepum-sim: kernel %s touches %llu bytes at 0x%llx, outside live memory\n", launch->kernel->name,
                 static_cast<unsigned long long>(bad->bytes), static_cast<unsigned long long>(bad->address));
    kernel.accesses.clear();
    kernel.effect = [s, device] { set_sticky(*s, device, CUDA_ERROR_ILLEGAL_ADDRESS); };
    return kernel;
  }
  if (launch->kernel->flops != nullptr) kernel.flops = launch->kernel->flops(&launch->view);
  kernel.matrix_units = launch->kernel->matrix_units != 0;
  if (launch->kernel->tiled != 0) kernel.tiles = std::uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
  if (launch->kernel->run != nullptr) {
    kernel.effect = [s, device, launch] {
      if (s->acts(device)) launch->kernel->run(&launch->view);
    };
  }
  return kernel;
}

um_model::Kernel make_compiled_kernel(State& state, const KernelWork& work) {
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
  std::erase_if(kernel.accesses, [&](const um_model::Access& access) {
    const Allocation* const allocation = state.memory.find(access.range.address);
    if (allocation != nullptr && allocation->kind == MemoryKind::managed) return false;
    kernel.device_bytes += access.range.bytes * (static_cast<unsigned>(access.read) + static_cast<unsigned>(access.write));
    return true;
  });
  return kernel;
}

}  // namespace

um_model::Kernel make_kernel(State& state, int device, const KernelWork& work) {
  um_model::Kernel kernel = work.function->host != nullptr ? make_host_kernel(state, device, work) : make_compiled_kernel(state, work);
  ++state.launches;
  return kernel;
}

}  // namespace deepum::simgpu
