#include "devices.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "driver.hpp"
#include "forkable_mutex.hpp"
#include "observed_faults.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "say.hpp"
#include "session.hpp"
#include "shim_settings.hpp"

namespace deepum::hooks {
namespace {

struct ThreadContext {
  CUcontext context = nullptr;
  int device = -1;
  bool known = false;
  std::uint32_t epoch = 0;
};
constinit thread_local ThreadContext here [[gnu::tls_model("initial-exec")]];
std::atomic<std::uint32_t> context_epoch{0};
std::atomic<CUcontext> context_of_device[DEEPUM_MAX_DEVICES];
std::atomic<CUcontext> primary[DEEPUM_MAX_DEVICES];
std::atomic<bool> several{false};

Device devices[DEEPUM_MAX_DEVICES];
std::atomic<bool> device_known[DEEPUM_MAX_DEVICES];

void refresh() noexcept {
  here.known = true;
  here.epoch = context_epoch.load(std::memory_order_acquire);
  here.device = -1;
  here.context = nullptr;
  const runtime::Driver& driver = runtime::driver();
  CUdevice device = -1;
  {
    Inside guard;
    if (!driver.CtxGetCurrent || driver.CtxGetCurrent(&here.context) != CUDA_SUCCESS ||
        !here.context) {
      return;
    }
    if (!driver.CtxGetDevice || driver.CtxGetDevice(&device) != CUDA_SUCCESS || device < 0 ||
        device >= DEEPUM_MAX_DEVICES) {
      return;
    }
  }
  CUcontext first = nullptr;
  if (!context_of_device[device].compare_exchange_strong(first, here.context) &&
      first != here.context) {
    several.store(true);
  }
  here.device = device;
  here.known = runtime::enter_device(device, here.context);
  begin_observing_faults();
}

}  // namespace

int current_device() noexcept {
  // Without a context it is asked again each time: there are ways to make one that are not hooked.
  if (!here.known || here.device < 0 || here.epoch != context_epoch.load(std::memory_order_relaxed))
      [[unlikely]] {
    refresh();
  }
  return here.device;
}

CUcontext current_context() noexcept { return current_device() < 0 ? nullptr : here.context; }

void context_changed() noexcept { here.known = false; }

void contexts_destroyed() noexcept { context_epoch.fetch_add(1, std::memory_order_acq_rel); }

void primary_context_seen(CUdevice device, CUcontext context) noexcept {
  if (device >= 0 && device < DEEPUM_MAX_DEVICES) {
    primary[device].store(context);
  }
}

CUcontext primary_context(CUdevice device) noexcept {
  return device >= 0 && device < DEEPUM_MAX_DEVICES ? primary[device].load() : nullptr;
}

bool several_contexts() noexcept { return several.load(std::memory_order_relaxed); }

const Device* device_memory(int device) noexcept {
  if (device < 0 || device >= DEEPUM_MAX_DEVICES) {
    return nullptr;
  }
  if (device_known[device].load(std::memory_order_acquire)) {
    return &devices[device];
  }
  const runtime::Driver& driver = runtime::driver();
  Device answer;
  int concurrent = 0;
  std::size_t total = 0;
  {
    Inside guard;
    if (!driver.DeviceTotalMem || driver.DeviceTotalMem(&total, device) != CUDA_SUCCESS) {
      return nullptr;
    }
    if (driver.DeviceGetAttribute) {
      driver.DeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
    }
    if (driver.DeviceGetUuid) {
      driver.DeviceGetUuid(&answer.uuid, device);
    }
  }
  answer.total_bytes = total;
  std::size_t free = total;
  // It answers for the context at hand.
  if (driver.MemGetInfo && here.known && here.device == device) {
    Inside guard;
    std::size_t all = 0;
    if (driver.MemGetInfo(&free, &all) != CUDA_SUCCESS) {
      free = total;
    }
  }
  answer.gpu_bytes = std::min(
      {std::uint64_t{total}, std::uint64_t{free}, runtime::settings().gpu_memory.of(device)});
  answer.pageable = concurrent != 0;
  static std::atomic<bool> warned{false};
  if (!answer.pageable) {
    say_once(warned,
             "deepum: warning: device %d: no concurrent managed access; its allocations stay plain "
             "device memory\n",
             device);
  }
  static ForkableMutex mutex;
  const std::lock_guard lock(mutex);
  if (!device_known[device].load(std::memory_order_relaxed)) {
    devices[device] = answer;
    device_known[device].store(true, std::memory_order_release);
  }
  return &devices[device];
}

}  // namespace deepum::hooks
