#include "functions.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "forkable_mutex.hpp"
#include "hash.hpp"
#include "immortal.hpp"
#include "launches.hpp"
#include "real_driver.hpp"
#include "sparse_kernels.hpp"

namespace deepum::hooks {
namespace {

constexpr std::size_t kPlaces = 1u << 15;
constexpr int kProbes = 16;
// Open addressing; a full neighbourhood gives up its first place.
std::atomic<const KernelFunction*> places[kPlaces];
std::atomic<std::uint32_t> functions_epoch{1};

struct Functions {
  ForkableMutex mutex;
  std::unordered_map<CUkernel, CUlibrary> kernels;
  // Every function ever described, never freed since readers have no lock; equal ones are shared,
  // so unloading and loading again does not grow it.
  std::unordered_multimap<std::uint64_t, std::unique_ptr<KernelFunction>> described;
  std::uint64_t unnamed = 0;
};
Functions& functions() noexcept { return immortal<Functions>(); }

const KernelFunction no_function{};  // when memory is short

std::size_t place_of(CUfunction handle) noexcept {
  return (reinterpret_cast<std::uint64_t>(handle) * 0x9e3779b97f4a7c15ull) >> 49;
}

CUresult parameter(bool kernel, CUfunction handle, std::size_t index, std::size_t* offset,
                   std::size_t* size) noexcept {
  if (kernel && helpers.KernelGetParamInfo) {
    return helpers.KernelGetParamInfo(reinterpret_cast<CUkernel>(handle), index, offset, size);
  }
  if (helpers.FuncGetParamInfo) {
    return helpers.FuncGetParamInfo(handle, index, offset, size);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

std::unique_ptr<KernelFunction> ask(CUfunction handle, bool kernel) {
  auto function = std::make_unique<KernelFunction>();
  function->handle = handle;
  Inside guard;
  const char* name = nullptr;
  if (kernel && helpers.KernelGetName) {
    helpers.KernelGetName(&name, reinterpret_cast<CUkernel>(handle));
  }
  if (!name && helpers.FuncGetName && helpers.FuncGetName(&name, handle) != CUDA_SUCCESS) {
    name = nullptr;
  }
  if (!name && !kernel && helpers.KernelGetName) {
    if (helpers.KernelGetName(&name, reinterpret_cast<CUkernel>(handle)) != CUDA_SUCCESS) {
      name = nullptr;
    }
    kernel = name != nullptr;
  }
  std::vector<KernelFunction::Slot> slots;
  std::uint64_t layout = 0;
  std::size_t count = 0;
  for (; count < 4096; ++count) {
    std::size_t offset = 0;
    std::size_t size = 0;
    if (parameter(kernel, handle, count, &offset, &size) != CUDA_SUCCESS) {
      break;
    }
    layout = mix(layout, offset << 32 | size);
    if (count == 0 && offset == 0 && name) {
      function->tensor_lists = tensor_lists(name, size);
    }
    for (std::size_t at = (offset + 7) & ~std::size_t{7}; at + 8 <= offset + size && at < 65536;
         at += 8) {
      slots.push_back({static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(at - offset),
                       static_cast<std::uint32_t>(at)});
    }
  }
  // A driver before 12.4 cannot say; a kernel without parameters looks the same, and has none to
  // look at.
  function->layout_known = static_cast<bool>(helpers.FuncGetParamInfo);
  function->sparse = name && is_sparse(name);
  function->identity = name ? mix(hash_text(name), layout) : 0;
  function->slot_count = static_cast<std::uint32_t>(slots.size());
  function->slots = std::make_unique<KernelFunction::Slot[]>(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    function->slots[i] = slots[i];
  }
  return function;
}

bool same(const KernelFunction& a, const KernelFunction& b) noexcept {
  return a.handle == b.handle && a.identity == b.identity && a.slot_count == b.slot_count &&
         a.layout_known == b.layout_known;
}

// The driver may load the function's code, with locks held: no launch waits at a gate meanwhile.
[[gnu::noinline]] const KernelFunction& describe(CUfunction handle) noexcept try {
  const std::uint32_t now = functions_epoch.load(std::memory_order_acquire);
  bool kernel = false;
  {
    const std::lock_guard lock(functions().mutex);
    kernel = functions().kernels.contains(reinterpret_cast<CUkernel>(handle));
  }
  runtime::before_locked_wait();
  auto answer = ask(handle, kernel);  // no lock of ours while the driver is asked
  const std::lock_guard lock(functions().mutex);
  if (answer->identity == 0) {
    // Equal in a run that sees them in this order.
    answer->identity = mix(0x756e6e616d6564ull, ++functions().unnamed);
  }
  const KernelFunction* kept = nullptr;
  const auto [first, last] =
      functions().described.equal_range(reinterpret_cast<std::uint64_t>(handle));
  for (auto known = first; known != last; ++known) {
    if (same(*known->second, *answer)) {
      kept = known->second.get();
    }
  }
  if (!kept) {
    kept = functions()
               .described.emplace(reinterpret_cast<std::uint64_t>(handle), std::move(answer))
               ->second.get();
  }
  kept->epoch.store(now, std::memory_order_release);
  const std::size_t home = place_of(handle);
  std::size_t chosen = home;
  for (int probe = 0; probe < kProbes; ++probe) {
    const std::size_t place = (home + probe) % kPlaces;
    const KernelFunction* there = places[place].load(std::memory_order_relaxed);
    if (there && there->handle != handle && there->epoch.load(std::memory_order_relaxed) == now) {
      continue;
    }
    chosen = place;
    break;
  }
  places[chosen].store(kept, std::memory_order_release);
  return *kept;
} catch (...) {
  return no_function;
}

// Null: it was not seen yet, or a module was unloaded since.
const KernelFunction* known_function(CUfunction handle) noexcept {
  const std::uint32_t now = functions_epoch.load(std::memory_order_relaxed);
  const std::size_t home = place_of(handle);
  for (int probe = 0; probe < kProbes; ++probe) {
    const KernelFunction* there = places[(home + probe) % kPlaces].load(std::memory_order_acquire);
    if (!there) {
      break;
    }
    if (there->handle == handle && there->epoch.load(std::memory_order_relaxed) == now) {
      return there;
    }
  }
  return nullptr;
}

}  // namespace

const KernelFunction& kernel_function(CUfunction handle) noexcept {
  const KernelFunction* known = known_function(handle);
  return known ? *known : describe(handle);
}

const KernelFunction& launched_function(CUfunction handle) noexcept {
  if (const KernelFunction* known = known_function(handle)) [[likely]] {
    return *known;
  }
  runtime::next_launch_ungated();
  return describe(handle);
}

void kernel_handle_seen(CUkernel kernel, CUlibrary library) noexcept try {
  const std::lock_guard lock(functions().mutex);
  functions().kernels[kernel] = library;
} catch (...) {
  return;
}

void modules_changed(CUlibrary library) noexcept {
  functions_epoch.fetch_add(1, std::memory_order_acq_rel);
  if (!library) {
    return;
  }
  const std::lock_guard lock(functions().mutex);
  std::erase_if(functions().kernels,
                [library](const auto& kernel) { return kernel.second == library; });
}

void abandon_functions_in_child() noexcept { functions().mutex.renew(); }

}  // namespace deepum::hooks
