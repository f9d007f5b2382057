// Host functions, stream callbacks, values written and awaited by streams.
#include "graphs.hpp"
#include "not_simulated.hpp"
#include "operation.hpp"

using namespace deepum::simgpu;

namespace {

CUresult value_work(CUstream handle, CUdeviceptr address, std::uint64_t value, unsigned flags,
                    bool wide, bool wait) {
  // A helper's stays a helper's.
  Call call(Need::context, wait ? Role::synchronise : Role::migration);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::uint64_t bytes = wide ? 8 : 4;
  const Allocation* const allocation = call.state().memory.find(address);
  // Managed memory is not accepted, as in the real driver.
  if (address % bytes != 0 || allocation == nullptr || allocation->kind == MemoryKind::managed ||
      allocation->end() - address < bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ValueWork work{ValueWork::write, address, value, wide};
  if (wait) {
    switch (flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH)) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        work.kind = ValueWork::wait_geq;
        break;
      case CU_STREAM_WAIT_VALUE_EQ:
        work.kind = ValueWork::wait_eq;
        break;
      case CU_STREAM_WAIT_VALUE_AND:
        work.kind = ValueWork::wait_and;
        break;
      case CU_STREAM_WAIT_VALUE_NOR:
        work.kind = ValueWork::wait_nor;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return submit(call, stream, work);
}

}  // namespace

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  Call call(Need::context, Role::synchronise);  // a helper's stays a helper's
  if (!call) return call.error();
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return submit(call, stream, HostWork{[fn, userData] { fn(userData); }, fn, userData});
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = refuse_on_stream(call, stream); error != CUDA_SUCCESS) return error;
  State* const state = &call.state();
  const int device = stream->context->device;
  return submit(call, stream,
                HostWork{[=] {
                           CUresult status;
                           {
                             const std::lock_guard guard(lock());
                             status = state->devices[static_cast<std::size_t>(device)].sticky;
                           }
                           callback(hStream, status, userData);
                         },
                         nullptr, nullptr});
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int) {
  return value_work(stream, addr, value, 0, false, false);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int) {
  return value_work(stream, addr, value, 0, true, false);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  return value_work(stream, addr, value, flags, false, true);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
  return value_work(stream, addr, value, flags, true, true);
}

// The first forms differ in what hardware they need, not in meaning.
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                              unsigned int flags) {
  return cuStreamWriteValue32_v2(stream, addr, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                              unsigned int flags) {
  return cuStreamWriteValue64_v2(stream, addr, value, flags);
}
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                             unsigned int flags) {
  return cuStreamWaitValue32_v2(stream, addr, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                             unsigned int flags) {
  return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  if (flags != 0 || (count > 0 && paramArray == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& p = paramArray[i];
    CUresult error = CUDA_SUCCESS;
    switch (p.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        error = cuStreamWaitValue32_v2(stream, p.waitValue.address, p.waitValue.value,
                                       p.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        error = cuStreamWaitValue64_v2(stream, p.waitValue.address, p.waitValue.value64,
                                       p.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        error = cuStreamWriteValue32_v2(stream, p.writeValue.address, p.writeValue.value,
                                        p.writeValue.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        error = cuStreamWriteValue64_v2(stream, p.writeValue.address, p.writeValue.value64,
                                        p.writeValue.flags);
        break;
      case CU_STREAM_MEM_OP_BARRIER:
        break;  // everything is ordered already
      default:
        return not_simulated("cuStreamBatchMemOp of this kind");
    }
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
                            CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
