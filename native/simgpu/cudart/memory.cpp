// Memory: allocation, pools, copies, fills, prefetch and advice, pointer attributes.
#include <iterator>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

CUmemorytype side(cudaMemcpyKind kind, bool source) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
      return source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToHost:
      return source ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

CUDA_MEMCPY2D plane(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D p{};
  p.srcMemoryType = side(kind, true);
  p.srcHost = from;
  p.srcDevice = address(from);
  p.srcPitch = from_pitch;
  p.dstMemoryType = side(kind, false);
  p.dstHost = to;
  p.dstDevice = address(to);
  p.dstPitch = to_pitch;
  p.WidthInBytes = width;
  p.Height = height;
  return p;
}

CUmemLocation location(cudaMemLocation l) { return {static_cast<CUmemLocationType>(l.type), l.id}; }

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** memory, size_t bytes) {
  if (memory == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  *memory = nullptr;
  if (bytes == 0) {
    return cudaSuccess;
  }
  CUdeviceptr found = 0;
  const cudaError_t error = call(&Driver::cuMemAlloc, &found, bytes);
  *memory = error == cudaSuccess ? pointer(found) : nullptr;
  return error;
}
cudaError_t CUDARTAPI cudaMallocPitch(void** memory, size_t* pitch, size_t width, size_t height) {
  return call(&Driver::cuMemAllocPitch, reinterpret_cast<CUdeviceptr*>(memory), pitch, width, height, 4U);
}
cudaError_t CUDARTAPI cudaMallocManaged(void** memory, size_t bytes, unsigned int flags) {
  return call(&Driver::cuMemAllocManaged, reinterpret_cast<CUdeviceptr*>(memory), bytes, flags);
}
cudaError_t CUDARTAPI cudaFree(void* memory) {
  if (memory == nullptr) {
    return done(bind());  // the idiom that initialises a context
  }
  return call(&Driver::cuMemFree, address(memory));
}
cudaError_t CUDARTAPI cudaMemGetInfo(size_t* free, size_t* total) { return call(&Driver::cuMemGetInfo, free, total); }

cudaError_t CUDARTAPI cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  return call(&Driver::cuMemAllocAsync, reinterpret_cast<CUdeviceptr*>(memory), bytes, stream);
}
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return call(&Driver::cuMemAllocFromPoolAsync, reinterpret_cast<CUdeviceptr*>(memory), bytes, CUmemoryPool(pool), stream);
}
cudaError_t CUDARTAPI cudaFreeAsync(void* memory, cudaStream_t stream) { return call(&Driver::cuMemFreeAsync, address(memory), stream); }
cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool, const struct cudaMemPoolProps* properties) {
  return call(&Driver::cuMemPoolCreate, pool, reinterpret_cast<const CUmemPoolProps*>(properties));
}
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool) { return call(&Driver::cuMemPoolDestroy, CUmemoryPool(pool)); }
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return call(&Driver::cuMemPoolTrimTo, CUmemoryPool(pool), keep);
}
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value) {
  return call(&Driver::cuMemPoolSetAttribute, CUmemoryPool(pool), static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value) {
  return call(&Driver::cuMemPoolGetAttribute, CUmemoryPool(pool), static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc* access, size_t count) {
  return call(&Driver::cuMemPoolSetAccess, CUmemoryPool(pool), reinterpret_cast<const CUmemAccessDesc*>(access), count);
}

cudaError_t CUDARTAPI cudaHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  return call(&Driver::cuMemHostAlloc, memory, bytes, flags);
}
cudaError_t CUDARTAPI cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, cudaHostAllocDefault); }
cudaError_t CUDARTAPI cudaFreeHost(void* memory) { return memory == nullptr ? cudaSuccess : call(&Driver::cuMemFreeHost, memory); }
cudaError_t CUDARTAPI cudaHostRegister(void* memory, size_t bytes, unsigned int flags) {
  return call(&Driver::cuMemHostRegister, memory, bytes, flags);
}
cudaError_t CUDARTAPI cudaHostUnregister(void* memory) { return call(&Driver::cuMemHostUnregister, memory); }
cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return call(&Driver::cuMemHostGetDevicePointer, reinterpret_cast<CUdeviceptr*>(device), host, flags);
}
cudaError_t CUDARTAPI cudaHostGetFlags(unsigned int* flags, void* host) { return call(&Driver::cuMemHostGetFlags, flags, host); }

// All addresses live in one space, so the kind adds nothing to one-dimensional copies.
cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind) {
  return bytes == 0 ? cudaSuccess : call(&Driver::cuMemcpy, address(to), address(from), bytes);
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind, cudaStream_t stream) {
  return bytes == 0 ? cudaSuccess : call(&Driver::cuMemcpyAsync, address(to), address(from), bytes, stream);
}
cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t CUDARTAPI cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}
cudaError_t CUDARTAPI cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind) {
  const CUDA_MEMCPY2D p = plane(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2D, &p);
}
cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                        enum cudaMemcpyKind kind, cudaStream_t stream) {
  const CUDA_MEMCPY2D p = plane(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2DAsync, &p, stream);
}

cudaError_t CUDARTAPI cudaMemset(void* to, int value, size_t bytes) {
  return bytes == 0 ? cudaSuccess : call(&Driver::cuMemsetD8, address(to), static_cast<unsigned char>(value), bytes);
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return bytes == 0 ? cudaSuccess : call(&Driver::cuMemsetD8Async, address(to), static_cast<unsigned char>(value), bytes, stream);
}
cudaError_t CUDARTAPI cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call(&Driver::cuMemsetD2D8, address(to), pitch, static_cast<unsigned char>(value), width, height);
}
cudaError_t CUDARTAPI cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return call(&Driver::cuMemsetD2D8Async, address(to), pitch, static_cast<unsigned char>(value), width, height, stream);
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void* memory, size_t bytes, struct cudaMemLocation to, unsigned int flags,
                                           cudaStream_t stream) {
  return call(&Driver::cuMemPrefetchAsync, address(memory), bytes, location(to), flags, stream);
}
cudaError_t CUDARTAPI cudaMemAdvise(const void* memory, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation to) {
  return call(&Driver::cuMemAdvise, address(memory), bytes, static_cast<CUmem_advise>(advice), location(to));
}
cudaError_t CUDARTAPI cudaMemRangeGetAttribute(void* data, size_t data_bytes, enum cudaMemRangeAttribute attribute, const void* memory,
                                               size_t bytes) {
  return call(&Driver::cuMemRangeGetAttribute, data, data_bytes, static_cast<CUmem_range_attribute>(attribute), address(memory), bytes);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* memory) {
  if (attributes == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  unsigned int type = 0, managed = 0;
  int device = -1;
  CUdeviceptr on_device = 0;
  void* on_host = nullptr;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &on_device, &on_host};
  // Unknown pointers leave the values as they are and are no error.
  const cudaError_t error =
      call(&Driver::cuPointerGetAttributes, static_cast<unsigned int>(std::size(which)), which, values, address(memory));
  if (error != cudaSuccess) {
    return error;
  }
  *attributes = {};
  attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                     : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeUnregistered;
  attributes->device = type == 0 ? -2 : device;
  attributes->devicePointer = pointer(on_device);
  attributes->hostPointer = type == 0 ? const_cast<void*>(memory) : on_host;
  return cudaSuccess;
}

}  // extern "C"
