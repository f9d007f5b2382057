// PyTorch's caching allocator reports every block that it hands out and takes back to this function
// of libc10, for its profiler. Loaded before libc10, this definition comes first, or next behind a
// shim that does the same; it tells the driver's stand-in, so that it knows which memory is in use
// and which may hold nothing, and hands the report on.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

// c10::Device by value: two bytes, passed in a register.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};
constexpr std::int8_t kCuda = 1;  // c10::DeviceType::CUDA

using Report = void(void*, std::int64_t, std::size_t, std::size_t, TorchDevice);
using Note = void(std::uint64_t, std::int64_t);  // deepum_sim_note_block (../cuda/blocks.cpp)

template <typename F>
F* find(std::atomic<F*>& kept, const char* library, const char* name) noexcept {
  if (F* const known = kept.load(std::memory_order_relaxed)) return known;
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  auto* const found = loaded == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(loaded, name));
  kept.store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* pointer, std::int64_t bytes,
                                                      std::size_t allocated, std::size_t reserved,
                                                      TorchDevice device) {
  static constinit std::atomic<Report*> report{nullptr};
  static constinit std::atomic<Note*> note{nullptr};
  if (device.type == kCuda && pointer != nullptr) {
    if (Note* const tell = find(note, "libcuda.so.1", "deepum_sim_note_block"))
      tell(reinterpret_cast<std::uint64_t>(pointer), bytes);
  }
  // libc10 is loaded RTLD_LOCAL: RTLD_NEXT would not find it.
  Report* const next =
      find(report, "libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (next != nullptr && next != _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
    next(pointer, bytes, allocated, reserved, device);
}
