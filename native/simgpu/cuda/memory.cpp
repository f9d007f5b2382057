// Device and managed memory: allocate, free, ask.
#include "device.hpp"
#include "graphs.hpp"
#include "memory_calls.hpp"
#include "pools.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  std::uint64_t address = 0;
  const CUresult error =
      allocate_device(call.state(), call.context(), call.device(), bytesize, nullptr, address);
  if (error == CUDA_SUCCESS) *dptr = address;
  return error;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  if (pPitch == nullptr || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
    return CUDA_ERROR_INVALID_VALUE;
  constexpr size_t kPitchAlignment = 512;
  const size_t pitch = (WidthInBytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (Height > kMostBytes / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult error = cuMemAlloc_v2(dptr, pitch * Height);
  if (error == CUDA_SUCCESS) *pPitch = pitch;
  return error;
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  std::uint64_t address = 0;
  const CUresult error = allocate_managed(call.state(), call.context(), call.device(), bytesize,
                                          flags, nullptr, address);
  if (error == CUDA_SUCCESS) *dptr = address;
  return error;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  // The address says which device; programs free at their end without a current context.
  Call call(Need::initialised, Role::program);
  if (!call) return call.error();
  if (dptr == 0) return CUDA_SUCCESS;
  State& state = call.state();
  const Allocation* allocation = state.memory.at(dptr);
  if (allocation == nullptr || !allocation->on_gpu() || allocation->opens != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult sticky = state.devices[static_cast<std::size_t>(allocation->device)].sticky;
      sticky != CUDA_SUCCESS)
    return sticky;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  // As in the real driver, a free waits for the work that may still use the memory.
  finish_device(call, allocation->device);
  if (allocation->kind == MemoryKind::managed) finish_moves(call, allocation->range());
  allocation = state.memory.at(dptr);  // another thread may have freed it while this one waited
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  forget_in_pool(*allocation);
  release_allocation(state, dptr);
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  call.engine().catch_up(um_model::kProgram);
  if (free != nullptr) *free = call.engine().free_bytes(call.device());
  if (total != nullptr)
    *total = call.state().devices[static_cast<std::size_t>(call.device())].memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const Allocation* const allocation = call.state().memory.find(dptr);
  if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (pbase != nullptr) *pbase = allocation->base;
  if (psize != nullptr) *psize = allocation->bytes;
  return CUDA_SUCCESS;
}
