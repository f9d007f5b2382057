// What a context can be asked and told besides being current.
#include "device.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

CUresult cuCtxGetFlags(unsigned int* flags) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.context()->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  call.context()->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const CUcontext context = ctx != nullptr ? ctx : current_context();
  if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().contexts, context)) return CUDA_ERROR_INVALID_CONTEXT;
  *ctxId = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().contexts, ctx != nullptr ? ctx : current_context()))
    return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (leastPriority != nullptr) *leastPriority = 0;
  if (greatestPriority != nullptr) *greatestPriority = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pvalue == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  *pvalue = call.context()->limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  call.context()->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pconfig = call.context()->cache;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  call.context()->cache = config;  // a hint, without effect on the model
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pConfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pConfig = call.context()->shared;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  call.context()->shared = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() {
  const Call call(Need::context, Role::neutral);
  return call ? CUDA_SUCCESS : call.error();
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().contexts, peerContext)) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().contexts, peerContext)) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

// Profilers are told to start and stop by programs that run without one too.
extern "C" {
// No header of CUDA 13 declares it any more, the driver still has it. The last parameter is a
// CUoutput_mode.
CUresult cuProfilerInitialize(const char*, const char*, int) {
  const Call call(Need::initialised, Role::neutral);
  return call ? CUDA_SUCCESS : call.error();
}

CUresult cuProfilerStart() {
  const Call call(Need::initialised, Role::neutral);
  return call ? CUDA_SUCCESS : call.error();
}

CUresult cuProfilerStop() {
  const Call call(Need::initialised, Role::neutral);
  return call ? CUDA_SUCCESS : call.error();
}
}
