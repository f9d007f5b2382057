// PyTorch's caching allocator reports every block it hands out and takes back to this function of
// libc10, unconditionally and under its lock. Ours comes first by LD_PRELOAD and hands on, so that
// the profiler still sees its memory events.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocations.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

// c10::Device by value: two bytes, passed in a register.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};
constexpr std::int8_t kCuda = 1;  // c10::DeviceType::CUDA

using Report = void(void*, std::int64_t, std::size_t, std::size_t, TorchDevice);
constexpr const char* kReport = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

// Whoever interposes it behind this library, else libc10's own: it is loaded RTLD_LOCAL, where
// RTLD_NEXT does not find it.
Report* profiler() noexcept {
  static std::atomic<Report*> found{nullptr};
  if (Report* known = found.load(std::memory_order_relaxed)) {
    return known;
  }
  if (auto* next = reinterpret_cast<Report*>(real_dlsym(RTLD_NEXT, kReport))) {
    found.store(next, std::memory_order_relaxed);
    return next;
  }
  void* library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) {
    return nullptr;
  }
  auto* report = reinterpret_cast<Report*>(real_dlsym(library, kReport));
  found.store(report, std::memory_order_relaxed);
  return report;
}

}  // namespace
}  // namespace deepum::hooks

extern "C" DEEPUM_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
    void* pointer, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
    deepum::hooks::TorchDevice device) {
  using namespace deepum;
  if (device.type == hooks::kCuda && !hooks::inert.load(std::memory_order_relaxed) && pointer) {
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    auto& allocations = runtime::Allocations::instance();
    if (bytes > 0) {
      allocations.block_active(address, static_cast<std::uint64_t>(bytes), allocated, reserved);
    }
    if (bytes < 0) {
      allocations.block_inactive(address, static_cast<std::uint64_t>(-bytes), allocated, reserved);
    }
  }
  if (hooks::Report* report = hooks::profiler();
      report && report != _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE) {
    report(pointer, bytes, allocated, reserved, device);
  }
}
