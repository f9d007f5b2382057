// Members are named without "cu": cuda.h renames the full names by macro.
// The real driver's functions that our own code calls. Filled by the hooks' resolver with unhooked
// pointers; a member the driver does not have stays null. Nothing here may be called inside a
// stream capture, nor with a lock of ours held.
#pragma once

#include <cuda.h>

namespace deepum::runtime {

struct Driver {
  CUresult (*CtxGetCurrent)(CUcontext*) = nullptr;
  CUresult (*CtxSetCurrent)(CUcontext) = nullptr;
  CUresult (*CtxPushCurrent)(CUcontext) = nullptr;
  CUresult (*CtxPopCurrent)(CUcontext*) = nullptr;
  CUresult (*CtxGetDevice)(CUdevice*) = nullptr;
  CUresult (*StreamCreate)(CUstream*, unsigned) = nullptr;
  CUresult (*StreamDestroy)(CUstream) = nullptr;
  CUresult (*StreamWaitEvent)(CUstream, CUevent, unsigned) = nullptr;
  CUresult (*StreamSynchronize)(CUstream) = nullptr;
  CUresult (*StreamQuery)(CUstream) = nullptr;
  // The form of 11.7, which needs no module option.
  CUresult (*StreamWaitValue64)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = nullptr;
  // Likewise.
  CUresult (*StreamWriteValue64)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = nullptr;
  CUresult (*LaunchHostFunc)(CUstream, CUhostFn, void*) = nullptr;
  CUresult (*StreamIsCapturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*ThreadExchangeStreamCaptureMode)(CUstreamCaptureMode*) = nullptr;
  CUresult (*EventCreate)(CUevent*, unsigned) = nullptr;
  CUresult (*EventDestroy)(CUevent) = nullptr;
  CUresult (*EventRecord)(CUevent, CUstream) = nullptr;
  CUresult (*EventQuery)(CUevent) = nullptr;
  CUresult (*EventSynchronize)(CUevent) = nullptr;
  CUresult (*EventElapsedTime)(float*, CUevent, CUevent) = nullptr;
  CUresult (*MemGetInfo)(size_t*, size_t*) = nullptr;
  CUresult (*DeviceTotalMem)(size_t*, CUdevice) = nullptr;
  CUresult (*DeviceGetAttribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*DeviceGetUuid)(CUuuid*, CUdevice) = nullptr;
  CUresult (*MemHostRegister)(void*, size_t, unsigned) = nullptr;
  CUresult (*MemHostGetDevicePointer)(CUdeviceptr*, void*, unsigned) = nullptr;
  CUresult (*MemAllocManaged)(CUdeviceptr*, size_t, unsigned) = nullptr;
  // The CUDA 8 form.
  CUresult (*MemPrefetchAsync)(CUdeviceptr, size_t, CUdevice, CUstream) = nullptr;
  // 12.2.
  CUresult (*MemPrefetchAsync_v2)(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) = nullptr;
  CUresult (*MemAdvise)(CUdeviceptr, size_t, CUmem_advise, CUdevice) = nullptr;
  CUresult (*MemAdvise_v2)(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) = nullptr;
  CUresult (*MemPrefetchBatchAsync)(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                    unsigned long long,
                                    CUstream) = nullptr;  // 13.0
  // 13.0.
  CUresult (*MemDiscardBatchAsync)(CUdeviceptr*, size_t*, size_t, unsigned long long,
                                   CUstream) = nullptr;
  CUresult (*MemDiscardAndPrefetchBatchAsync)(CUdeviceptr*, size_t*, size_t, CUmemLocation*,
                                              size_t*, size_t, unsigned long long,
                                              CUstream) = nullptr;  // 13.0
};

Driver& driver() noexcept;

}  // namespace deepum::runtime
