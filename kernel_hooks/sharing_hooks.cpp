// Calls by which a program hands its memory to other processes or devices. They are the driver's;
// we only look at what it refuses.
#include "real_driver.hpp"
#include "sharing.hpp"

namespace deepum::hooks {
namespace {

template <bool kPerThread>
CUresult on_cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const CUresult result = forward(real<false>().cuIpcGetMemHandle, handle, address);
  tell_if_refused("cuIpcGetMemHandle", address, result, kIpc);
  return result;
}

template <bool kPerThread>
CUresult on_cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                          CUmemRangeHandleType type, unsigned long long flags) {
  const CUresult result =
      forward(real<false>().cuMemGetHandleForAddressRange, handle, address, bytes, type, flags);
  tell_if_refused("cuMemGetHandleForAddressRange", address, result, kDmaBuf);
  return result;
}

// Set on memory that is about to be registered for RDMA (CUDA's GPUDirect RDMA guide,
// "Synchronization and Memory Ordering").
template <bool kPerThread>
CUresult on_cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                  CUdeviceptr address) {
  const CUresult result = forward(real<false>().cuPointerSetAttribute, value, attribute, address);
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    tell_if_refused("CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", address, result, kGpuDirect);
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_SHARING
#include "exports.inc"
