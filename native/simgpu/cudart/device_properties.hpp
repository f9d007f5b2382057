// A device's properties, in the layout of either major: the fields have the same names, and which
// of them there are differs.
#pragma once

#include <cstring>

#include "runtime.hpp"

namespace deepum::simgpu::cudart {

// 0 where the driver does not tell.
inline int attribute(int device, CUdevice_attribute which) {
  int value = 0;
  return driver().cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

template <typename Properties>
struct Field {
  int Properties::* member;
  CUdevice_attribute attribute;
};

template <typename Properties>
constexpr Field<Properties> kFields[] = {
    {&Properties::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&Properties::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&Properties::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&Properties::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&Properties::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&Properties::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&Properties::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&Properties::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&Properties::maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH},
    {&Properties::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&Properties::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&Properties::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&Properties::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&Properties::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&Properties::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&Properties::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&Properties::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&Properties::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&Properties::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&Properties::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&Properties::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&Properties::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&Properties::hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {&Properties::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&Properties::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&Properties::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&Properties::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&Properties::directManagedMemAccessFromHost,
     CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
    {&Properties::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&Properties::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&Properties::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&Properties::clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
};

// What both majors have; all else is 0.
template <typename Properties>
cudaError_t get_properties(Properties* properties, int device) {
  int count = 0;
  if (properties == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    return last_error();
  }
  if (device < 0 || device >= count) {
    return fail(cudaErrorInvalidDevice);
  }
  Properties p{};
  driver().cuDeviceGetName(p.name, sizeof p.name, device);
  CUuuid uuid{};
  driver().cuDeviceGetUuid(&uuid, device);
  std::memcpy(&p.uuid, &uuid, sizeof p.uuid);
  driver().cuDeviceTotalMem(&p.totalGlobalMem, device);
  for (const Field<Properties>& field : kFields<Properties>) {
    p.*field.member = attribute(device, field.attribute);
  }
  p.sharedMemPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.sharedMemPerMultiprocessor =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.sharedMemPerBlockOptin =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.reservedSharedMemPerBlock =
      attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p.totalConstMem = attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.memPitch = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.textureAlignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p.texturePitchAlignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  for (int axis = 0; axis < 3; ++axis) {
    p.maxThreadsDim[axis] = attribute(
        device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis));
    p.maxGridSize[axis] = attribute(
        device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis));
  }
  *properties = p;
  return cudaSuccess;
}

}  // namespace deepum::simgpu::cudart
