// The shim's own settings: what of the environment it reads itself.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "deferral.hpp"
#include "plain_rules.hpp"
#include "records.h"

namespace deepum::runtime {

enum class Faults { kAuto, kOn, kOff, kTimes };
enum class FaultSources { kAuto, kCupti, kUvmTools };

// A size for each GPU, by ordinal.
struct DeviceSizes {
  std::uint64_t bytes[DEEPUM_MAX_DEVICES];
  explicit constexpr DeviceSizes(std::uint64_t all) noexcept : bytes() {
    for (std::uint64_t& each : bytes) {
      each = all;
    }
  }
  constexpr std::uint64_t of(CUdevice device) const noexcept {
    return bytes[device < 0 ? 0 : device < DEEPUM_MAX_DEVICES ? device : DEEPUM_MAX_DEVICES - 1];
  }
};

// The shim's own settings; everything else travels to the daemon as text. Read once, at load, from
// the environment.
struct ShimSettings {
  bool disabled = false;   // DEEPUM_DISABLE
  bool lock_step = false;  // DEEPUM_SYNC
  // DEEPUM_LOG: 0 silent, 1 warnings, 2 info, 3 debug.
  int log_level = 1;
  // DEEPUM_MANAGED_LIMIT, bytes, over all processes of the user on a GPU.
  std::uint64_t managed_limit = UINT64_MAX;
  DeviceSizes gpu_memory{UINT64_MAX};  // DEEPUM_GPU_MEMORY, bytes of each GPU
  // DEEPUM_GPU_RESERVE, bytes of each GPU that managed memory leaves free.
  std::uint64_t gpu_reserve = 128ull << 20;
  // DEEPUM_HOST_MEMORY, bytes; UINT64_MAX: 90 % of what is available at the first allocation.
  std::uint64_t host_memory = UINT64_MAX;
  // DEEPUM_HOST_MEMORY_VIRTUAL: addresses without memory behind them, any budget is sound.
  bool host_memory_is_virtual = false;
  // DEEPUM_MANAGED_THRESHOLD, bytes: smaller allocations stay device memory.
  std::uint64_t managed_threshold = 1ull << 20;
  // DEEPUM_PLAIN_MEMORY: which others stay device memory.
  PlainRules plain_memory;
  bool prefetch = true;  // DEEPUM_PREFETCH: carry prefetches out
  // DEEPUM_FAULTS: auto, while the daemon asks for them; on; off; times, no faults, but how far
  // streams are, while the daemon asks for it.
  Faults faults = Faults::kOff;
  // DEEPUM_FAULT_SOURCE: auto, CUPTI if it can be had, else uvm-tools; cupti; uvm-tools.
  FaultSources fault_source = FaultSources::kAuto;
  // DEEPUM_GATES: under pressure, out of lock-step, launches wait for their moves.
  bool gates = true;
  // DEEPUM_MOVES: stream, the driver defers them; host, it blocks; auto, to be found.
  Deferral deferral = Deferral::kUnknown;
  // DEEPUM_FAULT_INTERVAL, launches in lock-step between two looks for observed faults.
  std::uint32_t fault_interval = 64;
  // DEEPUM_MARKER_INTERVAL, launches a stream between two progress markers.
  std::uint32_t marker_interval = 16;
  // DEEPUM_DAEMON_SILENCE, seconds after which a daemon that takes nothing is given up.
  std::uint64_t daemon_silence = 10;
  // DEEPUM_HANDOVER_BYTES, given to the driver a direction and not yet complete; lock-step: no
  // limit.
  std::uint64_t handover_bytes = 64ull << 20;
};
const ShimSettings& settings() noexcept;
// Why a daemon that takes nothing is given up, in words.
const char* daemon_silent() noexcept;

}  // namespace deepum::runtime
