// Devices: selection, limits, peers.
#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

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

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call(&Driver::cuDeviceGetPCIBusId, text, bytes, CUdevice(device));
}
cudaError_t CUDARTAPI cudaDeviceSynchronize(void) { return call(&Driver::cuCtxSynchronize); }
cudaError_t CUDARTAPI cudaDeviceReset(void) {
  return call(&Driver::cuDevicePrimaryCtxReset, CUdevice(current_device()));
}
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
  return driver().status != CUDA_SUCCESS
             ? fail(code(driver().status))
             : done(driver().cuDevicePrimaryCtxSetFlags(current_device(), flags));
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
