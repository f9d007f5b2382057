// How programs reach the driver: linked (our exports come first), dlsym (wrapped: dlsym.cpp),
// cuGetProcAddress (wrapped).
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "declared_reads.hpp"
#include "driver.hpp"
#include "real_driver.hpp"
#include "say.hpp"

namespace deepum::hooks {

RealDriver real_tables[2];
Helpers helpers;
std::atomic<bool> inert{false};

namespace {

struct Entry {
  const char* symbol;
  const char* public_name;
  int since;
  bool per_thread;
  void* hook;
  std::uintptr_t member;  // offset of a Function in RealDriver

  void* real() const noexcept {
    return reinterpret_cast<const Function<CUresult()>*>(
               reinterpret_cast<const char*>(&real_tables[per_thread]) + member)
        ->address();
  }
  void set_real(void* address) const noexcept {
    reinterpret_cast<Function<CUresult()>*>(reinterpret_cast<char*>(&real_tables[per_thread]) +
                                            member)
        ->set(address);
  }
};

}  // namespace
}  // namespace deepum::hooks

// The per-thread exports, which cuda.h declares under renaming macros only.
#define HOOKS_ALL
#define HOOK(symbol, public_name, since, parameters, arguments)
#define HOOK_PER_THREAD(symbol, public_name, since, suffix, suffix_since, parameters, arguments) \
  extern "C" CUresult symbol##suffix parameters;
#include "hooks.def"

namespace deepum::hooks {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
const Entry entries[] = {
#define HOOKS_ALL
#define HOOK(symbol, public_name, since, parameters, arguments) \
  {#symbol,                                                     \
   #public_name,                                                \
   since,                                                       \
   false,                                                       \
   reinterpret_cast<void*>(&::symbol),                          \
   offsetof(RealDriver, symbol)},
#define HOOK_PER_THREAD(symbol, public_name, since, suffix, suffix_since, parameters, arguments) \
  HOOK(symbol, public_name, since, parameters, arguments){                                       \
      #symbol #suffix,                                                                           \
      #public_name,                                                                              \
      suffix_since,                                                                              \
      true,                                                                                      \
      reinterpret_cast<void*>(&::symbol##suffix),                                                \
      offsetof(RealDriver, symbol)},
#include "hooks.def"
};
#pragma GCC diagnostic pop

template <typename F>
void find(void* library, F*& member, const char* symbol) noexcept {
  member = reinterpret_cast<F*>(real_dlsym(library, symbol));
}

void fill_driver(void* library) noexcept {
  runtime::Driver& driver = runtime::driver();
  find(library, driver.CtxGetCurrent, "cuCtxGetCurrent");
  find(library, driver.CtxSetCurrent, "cuCtxSetCurrent");
  find(library, driver.CtxPushCurrent, "cuCtxPushCurrent_v2");
  find(library, driver.CtxPopCurrent, "cuCtxPopCurrent_v2");
  find(library, driver.CtxGetDevice, "cuCtxGetDevice");
  find(library, driver.StreamCreate, "cuStreamCreate");
  find(library, driver.StreamDestroy, "cuStreamDestroy_v2");
  find(library, driver.StreamWaitEvent, "cuStreamWaitEvent");
  find(library, driver.StreamSynchronize, "cuStreamSynchronize");
  find(library, driver.StreamQuery, "cuStreamQuery");
  find(library, driver.StreamWaitValue64, "cuStreamWaitValue64_v2");
  find(library, driver.StreamWriteValue64, "cuStreamWriteValue64_v2");
  find(library, driver.LaunchHostFunc, "cuLaunchHostFunc");
  find(library, driver.StreamIsCapturing, "cuStreamIsCapturing");
  find(library, driver.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  find(library, driver.EventCreate, "cuEventCreate");
  find(library, driver.EventDestroy, "cuEventDestroy_v2");
  find(library, driver.EventRecord, "cuEventRecord");
  find(library, driver.EventQuery, "cuEventQuery");
  find(library, driver.EventElapsedTime, "cuEventElapsedTime");
  find(library, driver.EventSynchronize, "cuEventSynchronize");
  find(library, driver.MemGetInfo, "cuMemGetInfo_v2");
  find(library, driver.DeviceTotalMem, "cuDeviceTotalMem_v2");
  find(library, driver.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(library, driver.DeviceGetUuid, "cuDeviceGetUuid_v2");
  find(library, driver.MemHostRegister, "cuMemHostRegister_v2");
  find(library, driver.MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  find(library, driver.MemAllocManaged, "cuMemAllocManaged");
  find(library, driver.MemPrefetchAsync, "cuMemPrefetchAsync");
  find(library, driver.MemPrefetchAsync_v2, "cuMemPrefetchAsync_v2");
  find(library, driver.MemAdvise, "cuMemAdvise");
  find(library, driver.MemAdvise_v2, "cuMemAdvise_v2");
  find(library, driver.MemPrefetchBatchAsync, "cuMemPrefetchBatchAsync");
  find(library, driver.MemDiscardBatchAsync, "cuMemDiscardBatchAsync");
  find(library, driver.MemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync");
}

void fill_helpers(void* library) noexcept {
  helpers.FuncGetName.set(real_dlsym(library, "cuFuncGetName"));
  helpers.KernelGetName.set(real_dlsym(library, "cuKernelGetName"));
  helpers.FuncGetParamInfo.set(real_dlsym(library, "cuFuncGetParamInfo"));
  helpers.KernelGetParamInfo.set(real_dlsym(library, "cuKernelGetParamInfo"));
  helpers.StreamGetFlags.set(real_dlsym(library, "cuStreamGetFlags"));
  helpers.StreamGetCaptureInfo.set(real_dlsym(library, "cuStreamGetCaptureInfo_v2"));
  helpers.GraphGetNodes.set(real_dlsym(library, "cuGraphGetNodes"));
  helpers.GraphNodeGetType.set(real_dlsym(library, "cuGraphNodeGetType"));
  helpers.GraphKernelNodeGetParams.set(real_dlsym(library, "cuGraphKernelNodeGetParams_v2"));
  helpers.GraphMemcpyNodeGetParams.set(real_dlsym(library, "cuGraphMemcpyNodeGetParams"));
  helpers.GraphMemsetNodeGetParams.set(real_dlsym(library, "cuGraphMemsetNodeGetParams"));
  helpers.GraphChildGraphNodeGetGraph.set(real_dlsym(library, "cuGraphChildGraphNodeGetGraph"));
  helpers.DevicePrimaryCtxGetState.set(real_dlsym(library, "cuDevicePrimaryCtxGetState"));
}

std::atomic<bool> resolved{false};

const Entry* entry_of(const char* public_name, int version, unsigned long long flags) noexcept {
  if (!public_name) {
    return nullptr;
  }
  const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  // By per_thread; names without a stream have the plain one only.
  const Entry* best[2] = {nullptr, nullptr};
  for (const Entry& entry : entries) {
    if (entry.since > version || std::strcmp(entry.public_name, public_name) != 0) {
      continue;
    }
    const Entry*& kept = best[entry.per_thread];
    if (!kept || entry.since > kept->since) {
      kept = &entry;
    }
  }
  return per_thread && best[1] ? best[1] : best[0];
}

}  // namespace

void* driver_library(bool load) noexcept {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library && load) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
  }
  return library;  // kept: the driver is never unloaded under its hooks
}

void resolve() noexcept {
  if (resolved.load(std::memory_order_acquire)) {
    return;
  }
  void* library = driver_library(true);
  if (!library) {
    return;
  }
  fill_driver(library);
  fill_helpers(library);
  for (const Entry& entry : entries) {
    void* address = real_dlsym(library, entry.symbol);
    if (address && address != entry.hook) {
      entry.set_real(address);
    }
  }
  resolved.store(true, std::memory_order_release);
}

void* hook_of_symbol(const char* symbol) noexcept {
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.symbol, symbol) == 0) {
      return entry.hook;
    }
  }
  return cupti_hook_of_symbol(symbol);
}

// hooks.def lists every form up to this release of CUDA, whichever release's headers it is compiled
// with.
constexpr int kListedVersion = 13000;
constexpr int kMajorVersion = 1000, kMinorVersion = 10;  // of CUDA's numbers: 12.4 is 12040

// By the pointer the driver returned; where a driver answers with an address that is not that of
// its exported symbol, by version, and then only as far as this list is complete: a later CUDA may
// give the name another signature (13.4's cuGraphAddNode does).
void* hook_for(const char* public_name, void* real, int version,
               unsigned long long flags) noexcept {
  if (inert.load(std::memory_order_relaxed)) {
    return real;
  }
  const Entry* entry = entry_of(public_name, version, flags);
  if (entry && entry->real() == real) {
    return entry->hook;
  }
  for (const Entry& each : entries) {
    if (real == each.hook || real == each.real()) {
      return each.hook;
    }
  }
  if (!entry || version > kListedVersion) {
    static std::atomic<bool> warned{false};
    if (entry) {
      say_once(warned,
               "deepum: warning: %s: the program asks for the form of CUDA %d.%d, which this "
               "deepum does not know; such calls go by "
               "unseen: use a deepum that knows it\n",
               public_name, version / kMajorVersion, version % kMajorVersion / kMinorVersion);
    }
    return real;
  }
  if (!entry->real()) {
    entry->set_real(real);
  }
  return entry->hook;
}

namespace {

// The driver knows nothing of these.
bool answered_here(const char* symbol, void** function) noexcept {
  void* const ours = inert.load(std::memory_order_relaxed) ? nullptr : declaring_function(symbol);
  if (ours == nullptr || function == nullptr) {
    return false;
  }
  *function = ours;
  return true;
}

template <bool kPerThread>
CUresult on_cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (answered_here(symbol, function)) {
    return CUDA_SUCCESS;
  }
  const CUresult result = forward(real<false>().cuGetProcAddress, symbol, function, version, flags);
  if (result == CUDA_SUCCESS && function && *function) {
    *function = hook_for(symbol, *function, version, flags);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult* found) {
  if (answered_here(symbol, function)) {
    if (found) {
      *found = CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return CUDA_SUCCESS;
  }
  const CUresult result =
      forward(real<false>().cuGetProcAddress_v2, symbol, function, version, flags, found);
  if (result == CUDA_SUCCESS && function && *function) {
    *function = hook_for(symbol, *function, version, flags);
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_RESOLVER
#include "exports.inc"
