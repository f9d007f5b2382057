// Streams as the program sees them.
#include "device.hpp"
#include "graphs.hpp"
#include "pump.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (phStream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *phStream = make_stream(call.state(), call.context(), flags, priority);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().streams, hStream) || hStream->legacy) return CUDA_ERROR_INVALID_HANDLE;
  remove_stream(call.state(), hStream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamSynchronize(CUstream hStream) {
  Call call(Need::context, Role::synchronise);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = refuse_on_stream(call, stream); error != CUDA_SUCCESS) return error;
  return finish_stream(call, stream);
}

CUresult cuStreamQuery(CUstream hStream) {
  Call call(Need::context, Role::poll);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = refuse_on_stream(call, stream); error != CUDA_SUCCESS) return error;
  if (stream->legacy) enter(call, stream);
  const bool complete =
      call.poll([&] { return call.engine().query_stream(call.host(), stream->id); });
  collect_violations(call.state());
  const CUresult sticky =
      call.state().devices[static_cast<std::size_t>(stream->context->device)].sticky;
  if (sticky != CUDA_SUCCESS) return sticky;
  return complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int) {
  Call call(Need::context, Role::migration);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr || !alive(call.state().events, hEvent)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr || hEvent->capture != nullptr)
    return capture_wait(call, stream, hEvent);
  if (!hEvent->recorded) return CUDA_SUCCESS;
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  call.engine().wait(call.host(), enter(call, stream), hEvent->id);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (streamId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *streamId = stream->unique;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = stream->context;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  if (pGreenCtx != nullptr) *pGreenCtx = nullptr;
  return cuStreamGetCtx(hStream, pCtx);
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = stream->context->device;
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t, unsigned int) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (resolve_stream(call, hStream) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Allocation* const allocation = call.state().memory.find(dptr);
  // Attaching restricts who may touch the memory while; with concurrent managed access everybody
  // may, so nothing has to be done.
  return allocation != nullptr && allocation->kind == MemoryKind::managed
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
