// Devices: selection, properties, limits, peers.
#include <cstring>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

int attribute(int device, CUdevice_attribute which) {
  int value = 0;
  return driver().cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

struct Field {
  int cudaDeviceProp::* member;
  CUdevice_attribute attribute;
};

constexpr Field kFields[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&cudaDeviceProp::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {&cudaDeviceProp::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::directManagedMemAccessFromHost, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
};

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  if (count == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  *count = 0;
  if (driver().status != CUDA_SUCCESS) {
    return fail(code(driver().status));
  }
  return done(driver().cuDeviceGetCount(count));
}

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  if (device == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  if (driver().status != CUDA_SUCCESS) {
    return fail(code(driver().status));
  }
  *device = current_device();
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaSetDevice(int device) { return set_device(device); }
cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned, unsigned) { return set_device(device); }

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr which, int device) {
  // The numbers are the driver's (driver_types.h against cuda.h).
  if (driver().status != CUDA_SUCCESS) {
    return fail(code(driver().status));
  }
  return done(driver().cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device));
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
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
  cudaDeviceProp p{};
  driver().cuDeviceGetName(p.name, sizeof p.name, device);
  CUuuid uuid{};
  driver().cuDeviceGetUuid(&uuid, device);
  std::memcpy(&p.uuid, &uuid, sizeof p.uuid);
  driver().cuDeviceTotalMem(&p.totalGlobalMem, device);
  for (const Field& field : kFields) {
    p.*field.member = attribute(device, field.attribute);
  }
  p.sharedMemPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.sharedMemPerMultiprocessor = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.sharedMemPerBlockOptin = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.reservedSharedMemPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p.totalConstMem = attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.memPitch = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.textureAlignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p.texturePitchAlignment = attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  for (int axis = 0; axis < 3; ++axis) {
    p.maxThreadsDim[axis] = attribute(device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis));
    p.maxGridSize[axis] = attribute(device, static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis));
  }
  *properties = p;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call(&Driver::cuDeviceGetPCIBusId, text, bytes, CUdevice(device));
}
cudaError_t CUDARTAPI cudaDeviceSynchronize(void) { return call(&Driver::cuCtxSynchronize); }
cudaError_t CUDARTAPI cudaDeviceReset(void) { return call(&Driver::cuDevicePrimaryCtxReset, CUdevice(current_device())); }
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(&Driver::cuCtxGetStreamPriorityRange, least, greatest);
}
cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  return call(&Driver::cuCtxGetLimit, value, static_cast<CUlimit>(limit));
}
cudaError_t CUDARTAPI cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return call(&Driver::cuCtxSetLimit, static_cast<CUlimit>(limit), value);
}
cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned int* flags) {
  int active = 0;
  return call(&Driver::cuDevicePrimaryCtxGetState, CUdevice(current_device()), flags, &active);
}
cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned int flags) {
  return driver().status != CUDA_SUCCESS ? fail(code(driver().status)) : done(driver().cuDevicePrimaryCtxSetFlags(current_device(), flags));
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call(&Driver::cuDeviceCanAccessPeer, can, CUdevice(device), CUdevice(peer));
}
cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUcontext context = nullptr;
  const cudaError_t error = call(&Driver::cuDevicePrimaryCtxRetain, &context, CUdevice(peer));
  return error != cudaSuccess ? error : call(&Driver::cuCtxEnablePeerAccess, context, flags);
}

cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call(&Driver::cuDeviceGetDefaultMemPool, pool, CUdevice(device));
}
cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return call(&Driver::cuDeviceGetMemPool, pool, CUdevice(device));
}
cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return call(&Driver::cuDeviceSetMemPool, CUdevice(device), CUmemoryPool(pool));
}

}  // extern "C"
