// Contexts: which device this thread's calls are for, and what ends with a context.
#include "devices.hpp"
#include "discard_order.hpp"
#include "functions.hpp"
#include "memory.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "streams.hpp"
#include "waits.hpp"

namespace deepum::hooks {
namespace {

// The query belongs here and not in the first launch.
CUresult changed(CUresult result) noexcept {
  context_changed();
  if (result == CUDA_SUCCESS) {
    current_device();
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return changed(forward(real<false>().cuCtxCreate, context, flags, device));
}

template <bool kPerThread>
CUresult on_cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return changed(forward(real<false>().cuCtxCreate_v2, context, flags, device));
}

template <bool kPerThread>
CUresult on_cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                           unsigned flags, CUdevice device) {
  return changed(forward(real<false>().cuCtxCreate_v3, context, affinity, count, flags, device));
}

template <bool kPerThread>
CUresult on_cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                           CUdevice device) {
  return changed(forward(real<false>().cuCtxCreate_v4, context, parameters, flags, device));
}

template <bool kPerThread>
CUresult on_cuCtxPushCurrent_v2(CUcontext context) {
  return changed(forward(real<false>().cuCtxPushCurrent_v2, context));
}

template <bool kPerThread>
CUresult on_cuCtxPopCurrent_v2(CUcontext* context) {
  return changed(forward(real<false>().cuCtxPopCurrent_v2, context));
}

template <bool kPerThread>
CUresult on_cuCtxSetCurrent(CUcontext context) {
  return changed(forward(real<false>().cuCtxSetCurrent, context));
}

void context_ended(CUcontext context) noexcept {
  if (!context) {
    return;
  }
  forget_memory_of(context);
  runtime::context_destroyed(context);
  forget_streams_of(context);
  modules_changed(nullptr);
  contexts_destroyed();
}

CUresult destroyed(CUresult result, CUcontext context) noexcept {
  if (result == CUDA_SUCCESS) {
    context_ended(context);
  } else {
    runtime::context_stays(context);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuCtxDestroy(CUcontext context) {
  runtime::context_ending(context);
  return destroyed(forward(real<false>().cuCtxDestroy, context), context);
}

template <bool kPerThread>
CUresult on_cuCtxDestroy_v2(CUcontext context) {
  runtime::context_ending(context);
  return destroyed(forward(real<false>().cuCtxDestroy_v2, context), context);
}

template <bool kPerThread>
CUresult on_cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const CUresult result = forward(real<false>().cuDevicePrimaryCtxRetain, context, device);
  if (result == CUDA_SUCCESS && context) {
    primary_context_seen(device, *context);
  }
  return result;
}

// A release destroys the context only if it was the last.
CUresult primary_released(CUresult result, CUdevice device, CUcontext context) noexcept {
  unsigned flags = 0;
  int active = 1;
  if (result == CUDA_SUCCESS && helpers.DevicePrimaryCtxGetState) {
    Inside guard;
    if (helpers.DevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS) {
      active = 1;
    }
  }
  if (!active && context) {
    context_ended(context);
  } else {
    runtime::context_stays(context);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuDevicePrimaryCtxRelease(CUdevice device) {
  const CUcontext context = primary_context(device);
  runtime::context_ending(context);
  return primary_released(forward(real<false>().cuDevicePrimaryCtxRelease, device), device,
                          context);
}

template <bool kPerThread>
CUresult on_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const CUcontext context = primary_context(device);
  runtime::context_ending(context);
  return primary_released(forward(real<false>().cuDevicePrimaryCtxRelease_v2, device), device,
                          context);
}

template <bool kPerThread>
CUresult on_cuDevicePrimaryCtxReset(CUdevice device) {
  const CUcontext context = primary_context(device);
  runtime::context_ending(context);
  return destroyed(forward(real<false>().cuDevicePrimaryCtxReset, device), context);
}

template <bool kPerThread>
CUresult on_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  const CUcontext context = primary_context(device);
  runtime::context_ending(context);
  return destroyed(forward(real<false>().cuDevicePrimaryCtxReset_v2, device), context);
}

template <bool kPerThread>
CUresult on_cuCtxSynchronize() {
  if (current_device() < 0 || any_capture()) {
    return forward(real<false>().cuCtxSynchronize);
  }
  about_to_wait(DEEPUM_ALL_STREAMS, current_device());
  CUresult result = CUDA_SUCCESS;
  if (!synchronise_program_streams(&result)) {
    result = forward(real<false>().cuCtxSynchronize);
  }
  if (result == CUDA_SUCCESS) {
    waited(current_device());
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuCtxSynchronize_v2(CUcontext context) {
  if (current_device() < 0 || any_capture()) {
    return forward(real<false>().cuCtxSynchronize_v2, context);
  }
  about_to_wait(DEEPUM_ALL_STREAMS, current_device());
  CUresult result = CUDA_SUCCESS;
  const bool here = !context || context == current_context();
  if (!here || !synchronise_program_streams(&result)) {
    result = forward(real<false>().cuCtxSynchronize_v2, context);
  }
  if (result == CUDA_SUCCESS) {
    waited(current_device());
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuModuleUnload(CUmodule module) {
  const CUresult result = forward(real<false>().cuModuleUnload, module);
  modules_changed(nullptr);
  return result;
}

template <bool kPerThread>
CUresult on_cuLibraryUnload(CUlibrary library) {
  const CUresult result = forward(real<false>().cuLibraryUnload, library);
  modules_changed(library);
  return result;
}

template <bool kPerThread>
CUresult on_cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = forward(real<false>().cuLibraryGetKernel, kernel, library, name);
  if (result == CUDA_SUCCESS && kernel) {
    kernel_handle_seen(*kernel, library);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const CUresult result = forward(real<false>().cuLibraryEnumerateKernels, kernels, count, library);
  for (unsigned i = 0; result == CUDA_SUCCESS && kernels && i < count; ++i) {
    kernel_handle_seen(kernels[i], library);
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_CONTEXT
#include "exports.inc"
