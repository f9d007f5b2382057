// Memory: allocation, pools, copies, fills, prefetch and advice, pointer attributes.
#include <iterator>
#include <utility>

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

CUDA_MEMCPY2D plane(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind) {
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

// The planes of a region follow each other `ysize` rows apart.
void fill_planes(cudaPitchedPtr memory, cudaExtent extent, auto fill) {
  if (extent.height == memory.ysize) {
    fill(memory.ptr, extent.width, extent.height * extent.depth);
    return;
  }
  for (size_t z = 0; z < extent.depth; ++z) {
    fill(static_cast<char*>(memory.ptr) + z * memory.ysize * memory.pitch, extent.width,
         extent.height);
  }
}

CUmemLocation location(cudaMemLocation l) { return {static_cast<CUmemLocationType>(l.type), l.id}; }

}  // namespace

namespace deepum::simgpu::cudart {

bool as_driver_copy(const cudaMemcpy3DParms& copy, CUDA_MEMCPY3D* out) {
  if (copy.srcArray != nullptr || copy.dstArray != nullptr) {
    return false;
  }
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = side(copy.kind, true);
  c.srcHost = copy.srcPtr.ptr;
  c.srcDevice = address(copy.srcPtr.ptr);
  c.srcPitch = copy.srcPtr.pitch;
  c.srcHeight = copy.srcPtr.ysize;
  c.srcXInBytes = copy.srcPos.x, c.srcY = copy.srcPos.y, c.srcZ = copy.srcPos.z;
  c.dstMemoryType = side(copy.kind, false);
  c.dstHost = copy.dstPtr.ptr;
  c.dstDevice = address(copy.dstPtr.ptr);
  c.dstPitch = copy.dstPtr.pitch;
  c.dstHeight = copy.dstPtr.ysize;
  c.dstXInBytes = copy.dstPos.x, c.dstY = copy.dstPos.y, c.dstZ = copy.dstPos.z;
  c.WidthInBytes = copy.extent.width, c.Height = copy.extent.height, c.Depth = copy.extent.depth;
  *out = c;
  return true;
}

cudaMemcpy3DParms as_runtime_copy(const CUDA_MEMCPY3D& c) {
  cudaMemcpy3DParms copy{};
  const bool from_host = c.srcMemoryType == CU_MEMORYTYPE_HOST,
             to_host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  copy.srcPtr = {from_host ? const_cast<void*>(c.srcHost) : pointer(c.srcDevice), c.srcPitch,
                 c.srcPitch, c.srcHeight};
  copy.srcPos = {c.srcXInBytes, c.srcY, c.srcZ};
  copy.dstPtr = {to_host ? c.dstHost : pointer(c.dstDevice), c.dstPitch, c.dstPitch, c.dstHeight};
  copy.dstPos = {c.dstXInBytes, c.dstY, c.dstZ};
  copy.extent = {c.WidthInBytes, c.Height, c.Depth};
  copy.kind = c.srcMemoryType == CU_MEMORYTYPE_UNIFIED || c.dstMemoryType == CU_MEMORYTYPE_UNIFIED
                  ? cudaMemcpyDefault
              : from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                          : (to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
  return copy;
}

}  // namespace deepum::simgpu::cudart

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
  return call(&Driver::cuMemAllocPitch, reinterpret_cast<CUdeviceptr*>(memory), pitch, width,
              height, 4U);
}
cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr* memory, struct cudaExtent extent) {
  if (memory == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  void* start = nullptr;
  size_t pitch = 0;
  const cudaError_t error =
      cudaMallocPitch(&start, &pitch, extent.width, extent.height * extent.depth);
  *memory = {start, pitch, extent.width, extent.height};
  return error;
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
cudaError_t CUDARTAPI cudaMemGetInfo(size_t* free, size_t* total) {
  return call(&Driver::cuMemGetInfo, free, total);
}

cudaError_t CUDARTAPI cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  return call(&Driver::cuMemAllocAsync, reinterpret_cast<CUdeviceptr*>(memory), bytes, stream);
}
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool,
                                              cudaStream_t stream) {
  return call(&Driver::cuMemAllocFromPoolAsync, reinterpret_cast<CUdeviceptr*>(memory), bytes,
              CUmemoryPool(pool), stream);
}
cudaError_t CUDARTAPI cudaFreeAsync(void* memory, cudaStream_t stream) {
  return call(&Driver::cuMemFreeAsync, address(memory), stream);
}
cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool,
                                        const struct cudaMemPoolProps* properties) {
  return call(&Driver::cuMemPoolCreate, pool, reinterpret_cast<const CUmemPoolProps*>(properties));
}
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call(&Driver::cuMemPoolDestroy, CUmemoryPool(pool));
}
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return call(&Driver::cuMemPoolTrimTo, CUmemoryPool(pool), keep);
}
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                              void* value) {
  return call(&Driver::cuMemPoolSetAttribute, CUmemoryPool(pool),
              static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                              void* value) {
  return call(&Driver::cuMemPoolGetAttribute, CUmemoryPool(pool),
              static_cast<CUmemPool_attribute>(attribute), value);
}
cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool,
                                           const struct cudaMemAccessDesc* access, size_t count) {
  return call(&Driver::cuMemPoolSetAccess, CUmemoryPool(pool),
              reinterpret_cast<const CUmemAccessDesc*>(access), count);
}

cudaError_t CUDARTAPI cudaHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  return call(&Driver::cuMemHostAlloc, memory, bytes, flags);
}
cudaError_t CUDARTAPI cudaMallocHost(void** memory, size_t bytes) {
  return cudaHostAlloc(memory, bytes, cudaHostAllocDefault);
}
cudaError_t CUDARTAPI cudaFreeHost(void* memory) {
  return memory == nullptr ? cudaSuccess : call(&Driver::cuMemFreeHost, memory);
}
cudaError_t CUDARTAPI cudaHostRegister(void* memory, size_t bytes, unsigned int flags) {
  return call(&Driver::cuMemHostRegister, memory, bytes, flags);
}
cudaError_t CUDARTAPI cudaHostUnregister(void* memory) {
  return call(&Driver::cuMemHostUnregister, memory);
}
cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return call(&Driver::cuMemHostGetDevicePointer, reinterpret_cast<CUdeviceptr*>(device), host,
              flags);
}
cudaError_t CUDARTAPI cudaHostGetFlags(unsigned int* flags, void* host) {
  return call(&Driver::cuMemHostGetFlags, flags, host);
}

// All addresses live in one space, so the kind adds nothing to one-dimensional copies.
cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind) {
  return bytes == 0 ? cudaSuccess : call(&Driver::cuMemcpy, address(to), address(from), bytes);
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind,
                                      cudaStream_t stream) {
  return bytes == 0 ? cudaSuccess
                    : call(&Driver::cuMemcpyAsync, address(to), address(from), bytes, stream);
}
cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                          cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t CUDARTAPI cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}
cudaError_t CUDARTAPI cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, enum cudaMemcpyKind kind) {
  const CUDA_MEMCPY2D p = plane(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2D, &p);
}
cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                        size_t from_pitch, size_t width, size_t height,
                                        enum cudaMemcpyKind kind, cudaStream_t stream) {
  const CUDA_MEMCPY2D p = plane(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2DAsync, &p, stream);
}

cudaError_t CUDARTAPI cudaMemcpy3D(const struct cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D c;
  if (copy == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  const auto copy_box = &Driver::cuMemcpy3D;
  return as_driver_copy(*copy, &c) ? call(copy_box, &std::as_const(c))
                                   : not_simulated("cudaMemcpy3D of an array");
}
cudaError_t CUDARTAPI cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* copy, cudaStream_t stream) {
  CUDA_MEMCPY3D c;
  if (copy == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  const auto copy_box = &Driver::cuMemcpy3DAsync;
  return as_driver_copy(*copy, &c) ? call(copy_box, &std::as_const(c), stream)
                                   : not_simulated("cudaMemcpy3D of an array");
}

cudaError_t CUDARTAPI cudaMemset(void* to, int value, size_t bytes) {
  return bytes == 0
             ? cudaSuccess
             : call(&Driver::cuMemsetD8, address(to), static_cast<unsigned char>(value), bytes);
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return bytes == 0 ? cudaSuccess
                    : call(&Driver::cuMemsetD8Async, address(to), static_cast<unsigned char>(value),
                           bytes, stream);
}
cudaError_t CUDARTAPI cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call(&Driver::cuMemsetD2D8, address(to), pitch, static_cast<unsigned char>(value), width,
              height);
}
cudaError_t CUDARTAPI cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                        size_t height, cudaStream_t stream) {
  return call(&Driver::cuMemsetD2D8Async, address(to), pitch, static_cast<unsigned char>(value),
              width, height, stream);
}

cudaError_t CUDARTAPI cudaMemset3D(struct cudaPitchedPtr memory, int value,
                                   struct cudaExtent extent) {
  cudaError_t error = cudaSuccess;
  fill_planes(memory, extent, [&](void* plane, size_t width, size_t height) {
    error = error == cudaSuccess ? cudaMemset2D(plane, memory.pitch, value, width, height) : error;
  });
  return error;
}
cudaError_t CUDARTAPI cudaMemset3DAsync(struct cudaPitchedPtr memory, int value,
                                        struct cudaExtent extent, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  fill_planes(memory, extent, [&](void* plane, size_t width, size_t height) {
    error = error == cudaSuccess
                ? cudaMemset2DAsync(plane, memory.pitch, value, width, height, stream)
                : error;
  });
  return error;
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void* memory, size_t bytes,
                                           struct cudaMemLocation to, unsigned int flags,
                                           cudaStream_t stream) {
  return call(&Driver::cuMemPrefetchAsync, address(memory), bytes, location(to), flags, stream);
}
cudaError_t CUDARTAPI cudaMemAdvise(const void* memory, size_t bytes, enum cudaMemoryAdvise advice,
                                    struct cudaMemLocation to) {
  return call(&Driver::cuMemAdvise, address(memory), bytes, static_cast<CUmem_advise>(advice),
              location(to));
}
cudaError_t CUDARTAPI cudaMemRangeGetAttribute(void* data, size_t data_bytes,
                                               enum cudaMemRangeAttribute attribute,
                                               const void* memory, size_t bytes) {
  return call(&Driver::cuMemRangeGetAttribute, data, data_bytes,
              static_cast<CUmem_range_attribute>(attribute), address(memory), bytes);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes* attributes,
                                               const void* memory) {
  if (attributes == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  unsigned int type = 0, managed = 0;
  int device = -1;
  CUdeviceptr on_device = 0;
  void* on_host = nullptr;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &on_device, static_cast<void*>(&on_host)};
  // Unknown pointers leave the values as they are and are no error.
  const cudaError_t error =
      call(&Driver::cuPointerGetAttributes, static_cast<unsigned int>(std::size(which)), which,
           values, address(memory));
  if (error != cudaSuccess) {
    return error;
  }
  std::memset(attributes, 0, kMajor.pointer_attributes_bytes);
  attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                     : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeUnregistered;
  attributes->device = type == 0 ? -2 : device;
  attributes->devicePointer = pointer(on_device);
  attributes->hostPointer = type == 0 ? const_cast<void*>(memory) : on_host;
  return cudaSuccess;
}

// A value; what would use it, arrays and textures, is not there.
struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                             enum cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
