// How programs reach the driver: linked (our exports come first), dlsym (wrapped), cuGetProcAddress (wrapped).
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "driver.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {

RealDriver real_tables[2];
Helpers helpers;
std::atomic<bool> inert{false};

namespace {

using Dlsym = void*(void*, const char*);

struct Entry {
  const char* symbol;
  const char* public_name;
  int since;
  bool per_thread;
  void* hook;
  std::uintptr_t member;  // offset of a Function in RealDriver

  void* real() const noexcept {
    return reinterpret_cast<const Function<CUresult()>*>(reinterpret_cast<const char*>(&real_tables[per_thread]) + member)->address();
  }
  void set_real(void* address) const noexcept {
    reinterpret_cast<Function<CUresult()>*>(reinterpret_cast<char*>(&real_tables[per_thread]) + member)->set(address);
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
#undef HOOKS_ALL

extern "C" {
[[gnu::visibility("hidden")]] std::atomic<deepum::hooks::Dlsym*> deepum_real_dlsym{nullptr};
DEEPUM_EXPORT void* dlsym(void* handle, const char* name) noexcept;
[[gnu::visibility("hidden")]] void deepum_find_dlsym() noexcept;
}

namespace deepum::hooks {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
const Entry entries[] = {
#define HOOKS_ALL
#define HOOK(symbol, public_name, since, parameters, arguments) \
  {#symbol, #public_name, since, false, reinterpret_cast<void*>(&::symbol), offsetof(RealDriver, symbol)},
#define HOOK_PER_THREAD(symbol, public_name, since, suffix, suffix_since, parameters, arguments) \
  HOOK(symbol, public_name, since, parameters, arguments){                                       \
      #symbol #suffix, #public_name, suffix_since, true, reinterpret_cast<void*>(&::symbol##suffix), offsetof(RealDriver, symbol)},
#include "hooks.def"
#undef HOOKS_ALL
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
  find(library, driver.StreamIsCapturing, "cuStreamIsCapturing");
  find(library, driver.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  find(library, driver.EventCreate, "cuEventCreate");
  find(library, driver.EventDestroy, "cuEventDestroy_v2");
  find(library, driver.EventRecord, "cuEventRecord");
  find(library, driver.EventQuery, "cuEventQuery");
  find(library, driver.EventSynchronize, "cuEventSynchronize");
  find(library, driver.MemGetInfo, "cuMemGetInfo_v2");
  find(library, driver.DeviceTotalMem, "cuDeviceTotalMem_v2");
  find(library, driver.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(library, driver.DeviceGetUuid, "cuDeviceGetUuid_v2");
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
  helpers.GraphGetNodes.set(real_dlsym(library, "cuGraphGetNodes"));
  helpers.GraphNodeGetType.set(real_dlsym(library, "cuGraphNodeGetType"));
  helpers.GraphKernelNodeGetParams.set(real_dlsym(library, "cuGraphKernelNodeGetParams_v2"));
  helpers.GraphMemcpyNodeGetParams.set(real_dlsym(library, "cuGraphMemcpyNodeGetParams"));
  helpers.GraphMemsetNodeGetParams.set(real_dlsym(library, "cuGraphMemsetNodeGetParams"));
  helpers.GraphChildGraphNodeGetGraph.set(real_dlsym(library, "cuGraphChildGraphNodeGetGraph"));
  helpers.DevicePrimaryCtxGetState.set(real_dlsym(library, "cuDevicePrimaryCtxGetState"));
}

std::atomic<bool> resolved{false};

const Entry* meant_by(const char* public_name, int version, unsigned long long flags) noexcept {
  if (!public_name) return nullptr;
  const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Entry* best[2] = {nullptr, nullptr};  // by per_thread; names without a stream have the plain one only
  for (const Entry& entry : entries) {
    if (entry.since > version || std::strcmp(entry.public_name, public_name) != 0) continue;
    const Entry*& kept = best[entry.per_thread];
    if (!kept || entry.since > kept->since) kept = &entry;
  }
  return per_thread && best[1] ? best[1] : best[0];
}

}  // namespace

void* driver_library(bool load) noexcept {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library && load) library = dlopen("libcuda.so.1", RTLD_NOW);
  return library;  // kept: the driver is never unloaded under its hooks
}

void* real_dlsym(void* handle, const char* name) noexcept {
  if (!deepum_real_dlsym.load(std::memory_order_relaxed)) deepum_find_dlsym();
  return deepum_real_dlsym.load(std::memory_order_relaxed)(handle, name);
}

void resolve() noexcept {
  if (resolved.load(std::memory_order_acquire)) return;
  void* library = driver_library(true);
  if (!library) return;
  fill_driver(library);
  fill_helpers(library);
  for (const Entry& entry : entries) {
    void* address = real_dlsym(library, entry.symbol);
    if (address && address != entry.hook) entry.set_real(address);
  }
  resolved.store(true, std::memory_order_release);
}

void* hook_of_symbol(const char* symbol) noexcept {
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.symbol, symbol) == 0) return entry.hook;
  }
  return nullptr;
}

// By the pointer the driver returned; where a driver answers with an address that is not that of its exported symbol, by version,
// and then only as far as this list is complete: a later CUDA may give the name another signature.
void* hook_for(const char* public_name, void* real, int version, unsigned long long flags) noexcept {
  if (inert.load(std::memory_order_relaxed)) return real;
  const Entry* meant = meant_by(public_name, version, flags);
  if (meant && meant->real() == real) return meant->hook;
  for (const Entry& entry : entries) {
    if (real == entry.hook || real == entry.real()) return entry.hook;
  }
  if (!meant || version > CUDA_VERSION) return real;
  if (!meant->real()) meant->set_real(real);
  return meant->hook;
}

namespace {

template <bool kPerThread>
CUresult on_cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = forward(real<false>().cuGetProcAddress, symbol, function, version, flags);
  if (result == CUDA_SUCCESS && function && *function) *function = hook_for(symbol, *function, version, flags);
  return result;
}

template <bool kPerThread>
CUresult on_cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* found) {
  const CUresult result = forward(real<false>().cuGetProcAddress_v2, symbol, function, version, flags, found);
  if (result == CUDA_SUCCESS && function && *function) *function = hook_for(symbol, *function, version, flags);
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_RESOLVER
#include "exports.inc"
#undef HOOKS_RESOLVER

// ---- dlsym ----

extern "C" {

// glibc 2.34 moved dlsym into libc under a new version; aarch64 began at 2.17.
[[gnu::visibility("hidden"), gnu::used]] void deepum_find_dlsym() noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      deepum_real_dlsym.store(reinterpret_cast<deepum::hooks::Dlsym*>(found), std::memory_order_relaxed);
      return;
    }
  }
  __builtin_trap();  // no libc without dlsym can have loaded us
}

// Null: not hooked, hand the call on.
[[gnu::visibility("hidden"), gnu::used]] void* deepum_hook_of(const char* name) noexcept {
  return deepum::hooks::inert.load(std::memory_order_relaxed) ? nullptr : deepum::hooks::hook_of_symbol(name);
}

[[gnu::visibility("hidden"), gnu::used]] void* deepum_dlsym_hooked(void* handle, const char* name, void* hook) noexcept {
  return deepum::hooks::real_dlsym(handle, name) ? hook : nullptr;
}
}

// dlsym(RTLD_NEXT) and RTLD_DEFAULT depend on the caller's address, so every call that is not ours must reach the real one by a jump
// that leaves the stack as it was, whatever the optimisation level: hence assembly. RTLD_NEXT is never answered by us: from a
// library before us it finds our export by itself, from one after us the real function is meant.
#if defined(__x86_64__)
asm(R"(
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    cmpq $0, deepum_real_dlsym(%rip)
    je 2f
0:  testq %rsi, %rsi
    je 1f
    cmpb $99, (%rsi)            # 'c'
    jne 1f
    cmpb $117, 1(%rsi)          # 'u'
    jne 1f
    cmpq $-1, %rdi              # RTLD_NEXT
    je 1f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rsi, %rdi
    call deepum_hook_of
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    je 1f
    movq %rax, %rdx
    jmp deepum_dlsym_hooked
1:  jmpq *deepum_real_dlsym(%rip)
2:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call deepum_find_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp 0b
    .cfi_endproc
    .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    bti c
0:  adrp x9, deepum_real_dlsym
    ldr x9, [x9, :lo12:deepum_real_dlsym]
    cbz x9, 2f
    cbz x1, 1f
    ldrb w10, [x1]
    cmp w10, #99                // 'c'
    b.ne 1f
    ldrb w10, [x1, #1]
    cmp w10, #117               // 'u'
    b.ne 1f
    cmn x0, #1                  // RTLD_NEXT
    b.eq 1f
    stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    mov x29, sp
    mov x0, x1
    bl deepum_hook_of
    mov x2, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbnz x2, deepum_dlsym_hooked
    adrp x9, deepum_real_dlsym
    ldr x9, [x9, :lo12:deepum_real_dlsym]
1:  mov x16, x9
    br x16
2:  stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    mov x29, sp
    bl deepum_find_dlsym
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    b 0b
    .cfi_endproc
    .size dlsym, .-dlsym
)");
#else
#error "dlsym is wrapped in assembly: add this architecture"
#endif
