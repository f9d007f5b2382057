#include "arena_allocator.h"

#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>

#include "cuda_runtime.hpp"
#include "device_allocator.hpp"
#include "guarded.hpp"
#include "torch_calls.hpp"

using deepum::guarded;
using deepum::arena_allocator::CudaRuntime;
using deepum::arena_allocator::DeviceAllocator;
using deepum::arena_allocator::Settings;

namespace {

constexpr int kMostDevices = 64;
constexpr std::size_t kMostText = 512;

struct Devices {
  std::mutex mutex;
  Settings settings;
  std::array<std::unique_ptr<DeviceAllocator>, kMostDevices> allocators;

  DeviceAllocator* of(int device) {
    if (device < 0 || device >= kMostDevices) {
      return nullptr;
    }
    std::unique_ptr<DeviceAllocator>& one = allocators[static_cast<std::size_t>(device)];
    if (!one) {
      one = std::make_unique<DeviceAllocator>(device);
    }
    return one.get();
  }
};

// Never destroyed: tensors are freed until the very end of a process.
Devices& devices() noexcept {
  alignas(Devices) static unsigned char memory[sizeof(Devices)];
  static Devices* const only = new (memory) Devices;
  return *only;
}

void* allocated(std::size_t bytes, int device, cudaStream_t stream) noexcept {
  return guarded(static_cast<void*>(nullptr), [&]() -> void* {
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    DeviceAllocator* const allocator = all.of(device);
    return allocator != nullptr ? allocator->allocate(bytes, stream, all.settings) : nullptr;
  });
}

void describe_shortage(char* text, std::size_t bytes, int device) noexcept {
  deepum_arena_allocator_statistics statistics{};
  deepum_arena_allocator_get_statistics(device, &statistics);
  constexpr double kMiB = 1 << 20;
  std::snprintf(text, kMostText,
                "CUDA out of memory. Tried to allocate %.2f MiB. GPU %d has %.2f MiB free; "
                "deepum's arena and pool hold %.2f MiB, of which %.2f MiB are handed out.",
                static_cast<double>(bytes) / kMiB, device,
                static_cast<double>(CudaRuntime::instance().free(device)) / kMiB,
                static_cast<double>(statistics.held_bytes) / kMiB,
                static_cast<double>(statistics.live_bytes) / kMiB);
}

// What `run` does with the device's allocator, once there is one.
template <typename Run>
void with_device(int device, Run run) noexcept {
  guarded(false, [&] {
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    if (DeviceAllocator* const allocator = all.of(device)) {
      run(*allocator);
    }
    return true;
  });
}

// What it does with each that there is, until one has done it.
template <typename Run>
void with_any(Run run) noexcept {
  guarded(false, [&] {
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    for (const std::unique_ptr<DeviceAllocator>& each : all.allocators) {
      if (each && run(*each)) {
        return true;
      }
    }
    return false;
  });
}

}  // namespace

extern "C" {

void* deepum_arena_allocator_allocate(size_t bytes, int device, void* stream) {
  void* const memory = allocated(bytes, device, static_cast<cudaStream_t>(stream));
  if (memory == nullptr && bytes != 0) {
    char text[kMostText];
    describe_shortage(text, bytes, device);
    deepum::arena_allocator::throw_out_of_memory(text);
  }
  return memory;
}

void deepum_arena_allocator_free(void* pointer, size_t /*bytes*/, int device, void* /*stream*/) {
  if (pointer != nullptr) {
    with_device(device, [&](DeviceAllocator& allocator) { allocator.free(pointer); });
  }
}

void deepum_arena_allocator_record_stream(void* pointer, void* stream) {
  with_any([&](DeviceAllocator& allocator) {
    return allocator.record_stream(pointer, static_cast<cudaStream_t>(stream));
  });
}

void deepum_arena_allocator_reset(void) {
  with_any([](DeviceAllocator& allocator) {
    allocator.reset();
    return false;
  });
}

void deepum_arena_allocator_set_memory_fraction(double fraction, int device) {
  with_device(device, [&](DeviceAllocator& allocator) { allocator.set_memory_fraction(fraction); });
}

void deepum_arena_allocator_refuse_pool(int /*device*/) {
  deepum::arena_allocator::throw_error(
      "deepum.arena: memory pools and CUDA graphs need PyTorch's caching allocator; capture no "
      "graph, or do not install the arena");
}

void deepum_arena_allocator_configure(double seconds, int in_background) {
  guarded(false, [&] {
    Devices& all = devices();
    const std::lock_guard lock(all.mutex);
    all.settings = {seconds, in_background != 0};
    return true;
  });
}

int deepum_arena_allocator_get_statistics(int device,
                                          deepum_arena_allocator_statistics* statistics) {
  int found = 0;
  with_device(device, [&](DeviceAllocator& allocator) {
    *statistics = allocator.statistics();
    found = 1;
  });
  return found;
}

void deepum_arena_allocator_reset_peaks(int device) {
  with_device(device, [](DeviceAllocator& allocator) { allocator.reset_peaks(); });
}

}  // extern "C"
