// Managed memory cannot be shared with other processes or devices. The driver says so to the
// program; we say to its user what to do.
#pragma once

#include <cuda.h>

namespace deepum::hooks {

// What the program asked for: what cannot be done with managed memory, and the attribute of devices
// that can do it with other memory.
struct Sharing {
  const char* impossible;
  CUdevice_attribute ability;
};
inline constexpr Sharing kIpc{"shared with another process (CUDA IPC)",
                              CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED};
inline constexpr Sharing kDmaBuf{"exported as a DMA-BUF", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED};
inline constexpr Sharing kGpuDirect{"registered for GPUDirect RDMA",
                                    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED};

// After the driver answered `result`: if it refused, and the memory at `address` is managed without
// the program's knowing, counts it, and warns once for each size of allocation. Not on a device
// that refuses it for any memory.
void tell_if_refused(const char* what, CUdeviceptr address, CUresult result,
                     const Sharing& wanted) noexcept;
void abandon_sharing_in_child() noexcept;

}  // namespace deepum::hooks
