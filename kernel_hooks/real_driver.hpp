// The driver's own functions behind the hooked ones, found once, and the guard against the driver
// calling back into us.
#pragma once

// Compiled with __CUDA_API_VERSION_INTERNAL: every version under its own name, no renaming macros.
#include <cuda.h>

#include <atomic>

#define DEEPUM_EXPORT __attribute__((visibility("default")))

namespace deepum::hooks {

template <typename F>
class Function {
 public:
  template <typename... A>
  CUresult operator()(A... arguments) const {
    return pointer_.load(std::memory_order_relaxed)(arguments...);
  }
  explicit operator bool() const noexcept {
    return pointer_.load(std::memory_order_relaxed) != nullptr;
  }
  void* address() const noexcept {
    return reinterpret_cast<void*>(pointer_.load(std::memory_order_relaxed));
  }
  void set(void* address) noexcept {
    pointer_.store(reinterpret_cast<F*>(address), std::memory_order_relaxed);
  }

 private:
  std::atomic<F*> pointer_{nullptr};
};

// One member a hooked symbol; two such tables: the plain functions and the per-thread variants.
struct RealDriver {
#define HOOKS_ALL
#define HOOK(symbol, public_name, since, parameters, arguments) Function<decltype(::symbol)> symbol;
#define HOOK_PER_THREAD(symbol, public_name, since, suffix, suffix_since, parameters, arguments) \
  Function<decltype(::symbol)> symbol;
#include "hooks.def"
};
extern RealDriver real_tables[2];
template <bool kPerThread>
inline const RealDriver& real() noexcept {
  return real_tables[kPerThread];
}

// Unhooked functions that the hooks themselves need; a member the driver does not have stays null.
// Those of runtime::driver() are filled by the same code.
struct Helpers {
  Function<decltype(::cuFuncGetName)> FuncGetName;
  Function<decltype(::cuKernelGetName)> KernelGetName;
  Function<decltype(::cuFuncGetParamInfo)> FuncGetParamInfo;
  Function<decltype(::cuKernelGetParamInfo)> KernelGetParamInfo;
  Function<decltype(::cuStreamGetFlags)> StreamGetFlags;
  Function<decltype(::cuStreamGetCaptureInfo_v2)> StreamGetCaptureInfo;
  Function<decltype(::cuGraphGetNodes)> GraphGetNodes;
  Function<decltype(::cuGraphNodeGetType)> GraphNodeGetType;
  Function<decltype(::cuGraphKernelNodeGetParams_v2)> GraphKernelNodeGetParams;
  Function<decltype(::cuGraphMemcpyNodeGetParams)> GraphMemcpyNodeGetParams;
  Function<decltype(::cuGraphMemsetNodeGetParams)> GraphMemsetNodeGetParams;
  Function<decltype(::cuGraphChildGraphNodeGetGraph)> GraphChildGraphNodeGetGraph;
  Function<decltype(::cuDevicePrimaryCtxGetState)> DevicePrimaryCtxGetState;
};
extern Helpers helpers;

// Idempotent and without a lock, so that it may be entered again from the driver's own resolver.
void resolve() noexcept;
// The driver's library if it is loaded, else loads it; null without a driver.
void* driver_library(bool load) noexcept;
void* real_dlsym(void* handle, const char* name) noexcept;

template <typename F>
inline bool ready(const Function<F>& function) noexcept {
  if (function) [[likely]] {
    return true;
  }
  resolve();
  return static_cast<bool>(function);
}

// Pointers that resolvers hand out.
// Exact name as exported by libcuda, or libcupti; null when not hooked.
void* hook_of_symbol(const char* symbol) noexcept;
void* cupti_hook_of_symbol(const char* symbol) noexcept;
// dlsym answers with a hook that stands for `real`; others are no matter.
void cupti_symbol_found(const void* hook, void* real) noexcept;
// `real` itself when not hooked.
void* hook_for(const char* public_name, void* real, int version, unsigned long long flags) noexcept;

extern std::atomic<bool> inert;  // DEEPUM_DISABLE: every call is handed on as it is
inline constinit thread_local bool inside [[gnu::tls_model("initial-exec")]] = false;
inline bool bypass() noexcept { return inside | inert.load(std::memory_order_relaxed); }

// Around a call to the driver: should the driver call one of its own exported functions, that call
// is not the program's.
class Inside {
 public:
  Inside() noexcept : before_(inside) { inside = true; }
  ~Inside() { inside = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool before_;
};
template <typename F, typename... A>
inline CUresult forward(const Function<F>& function, A... arguments) noexcept {
  Inside guard;
  return function(arguments...);
}

}  // namespace deepum::hooks
