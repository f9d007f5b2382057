// Contexts: primary ones, own ones, and the stack of each thread.
#include <algorithm>
#include <utility>

#include "device.hpp"
#include "graphs.hpp"
#include "memory_calls.hpp"
#include "modules.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

CUcontext make_context(State& state, int device, unsigned flags, bool primary) {
  auto* const context = new CUctx_st;
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->id = state.next_id++;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  state.contexts.insert(context);
  context->legacy = make_stream(state, context, CU_STREAM_DEFAULT, 0);
  context->legacy->legacy = true;
  context->streams.erase(context->legacy);
  return context;
}

// Everything that lives in the context goes with it: memory, streams, modules, events.
void empty_context(Call& call, CUcontext context) {
  State& state = call.state();
  finish_context(call, context);
  // After an error the wait ends early; what is queued then has no effect, and must not be left
  // behind.
  if (state.devices[static_cast<std::size_t>(context->device)].sticky != CUDA_SUCCESS) {
    state.engine.synchronise_device(um_model::kProgram, context->device);
  }
  while (!context->streams.empty()) remove_stream(state, *context->streams.begin());
  for (const um_model::Event event : std::exchange(context->left, {}))
    state.engine.remove_event(event);
  std::vector<std::uint64_t> held;
  for (const auto& [base, allocation] : state.memory.all()) {
    if (allocation.context == context && allocation.pool == nullptr) held.push_back(base);
  }
  for (const std::uint64_t base : held) release_allocation(state, base);
  unload_modules(state, context);
}

void end_context(Call& call, CUcontext context) {
  empty_context(call, context);
  remove_stream(call.state(), context->legacy);
  call.state().contexts.erase(context);
  auto& stack = this_thread().contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  // The object stays: other threads may have it on their stacks, and learn from state.contexts that
  // it is gone.
}

void activate(State& state, int device) {
  const CUcontext context = primary_context(state, device);
  context->active = true;
  context->flags = state.devices[static_cast<std::size_t>(device)].primary_flags;
}

void deactivate(Call& call, int device) {
  Device& entry = call.state().devices[static_cast<std::size_t>(device)];
  entry.primary_users = 0;
  if (entry.primary == nullptr || !entry.primary->active) return;
  empty_context(call, entry.primary);
  entry.primary->active = false;
  entry.sticky = CUDA_SUCCESS;
}

}  // namespace

namespace deepum::simgpu {

CUcontext current_context() noexcept {
  const auto& stack = this_thread().contexts;
  return stack.empty() ? nullptr : stack.back();
}

CUcontext primary_context(State& state, int device) {
  Device& entry = state.devices[static_cast<std::size_t>(device)];
  if (entry.primary == nullptr) {
    entry.primary = make_context(state, device, entry.primary_flags, true);
    entry.primary->active = false;
  }
  return entry.primary;
}

}  // namespace deepum::simgpu

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = call.state().devices[static_cast<std::size_t>(dev)];
  if (device.primary_users++ == 0) activate(call.state(), dev);
  *pctx = device.primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = call.state().devices[static_cast<std::size_t>(dev)];
  if (device.primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (device.primary_users == 1) {
    deactivate(call, dev);
  } else {
    --device.primary_users;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  deactivate(call, dev);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  Device& device = call.state().devices[static_cast<std::size_t>(dev)];
  device.primary_flags = flags;
  if (device.primary != nullptr) device.primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  const Device& device = call.state().devices[static_cast<std::size_t>(dev)];
  if (flags != nullptr) *flags = device.primary_flags;
  if (active != nullptr) *active = device.primary_users > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams*, unsigned int flags, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pctx = make_context(call.state(), dev, flags, false);
  this_thread().contexts.push_back(*pctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam*, int, unsigned int flags,
                        CUdevice dev) {
  return cuCtxCreate_v4(pctx, nullptr, flags, dev);
}
CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return cuCtxCreate_v4(pctx, nullptr, flags, dev);
}
CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return cuCtxCreate_v4(pctx, nullptr, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().contexts, ctx) || ctx->primary) return CUDA_ERROR_INVALID_CONTEXT;
  end_context(call, ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ++call.context()->users;
  *pctx = call.context();
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().contexts, ctx) || ctx->primary || ctx != current_context())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (--ctx->users == 0) end_context(call, ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().contexts, ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  this_thread().contexts.push_back(ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  auto& stack = this_thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }

CUresult cuCtxSetCurrent(CUcontext ctx) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (ctx != nullptr && !alive(call.state().contexts, ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = this_thread().contexts;
  if (!stack.empty()) stack.pop_back();
  if (ctx != nullptr) stack.push_back(ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = current_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (ctx == nullptr) return cuCtxGetDevice(device);
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().contexts, ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = ctx->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Call call(Need::context, Role::synchronise);
  if (!call) return call.error();
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  return finish_context(call, call.context());
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  if (ctx == nullptr) return cuCtxSynchronize();
  Call call(Need::context, Role::synchronise);
  if (!call) return call.error();
  if (!alive(call.state().contexts, ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  return finish_context(call, ctx);
}
