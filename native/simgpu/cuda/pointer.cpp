// Pointer attributes.
#include <cstring>

#include "state.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

template <typename T>
CUresult answer(void* data, T value) {
  // Pointers are answers, too.
  const std::size_t bytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression)
  std::memcpy(data, static_cast<const void*>(&value), bytes);
  return CUDA_SUCCESS;
}

CUmemorytype type_of(const Allocation& allocation) {
  return allocation.on_gpu() ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

CUresult attribute_of(const Allocation& a, CUpointer_attribute attribute, CUdeviceptr ptr,
                      void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return answer(data, a.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer(data, static_cast<unsigned>(type_of(a)));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return answer(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (a.kind == MemoryKind::device) return CUDA_ERROR_INVALID_VALUE;
      return answer(data, ptr);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return answer(data, static_cast<unsigned>(a.sync_memops));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return answer(data, static_cast<unsigned long long>(a.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return answer(data, static_cast<unsigned>(a.kind == MemoryKind::managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer(data, a.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return answer(data, static_cast<unsigned>(a.kind == MemoryKind::device && a.pool == nullptr));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return answer(data, static_cast<CUdeviceptr>(a.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return answer(data, static_cast<size_t>(a.bytes));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return answer(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return answer(data, 0ull);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return answer(data, 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return answer(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return answer(data, a.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return answer(data, static_cast<size_t>(a.bytes));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return answer(data, static_cast<CUdeviceptr>(a.base));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return answer(data, static_cast<unsigned long long>(a.id));
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return answer(data, 0u);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// For memory that CUDA does not know cuPointerGetAttributes succeeds, with zeros.
CUresult absent(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return answer(data, 0ull);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer(data, -2);
    default:
      return answer(data, 0u);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* const allocation = call.state().memory.find(ptr);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return attribute_of(*allocation, attribute, ptr, data);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (numAttributes == 0 || attributes == nullptr || data == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const Allocation* const allocation = call.state().memory.find(ptr);
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (allocation == nullptr ||
        attribute_of(*allocation, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
      absent(attributes[i], data[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  Allocation* const allocation = call.state().memory.find(ptr);
  if (value == nullptr || allocation == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned flag = 0;
  std::memcpy(&flag, value, sizeof flag);
  allocation->sync_memops = flag != 0;
  return CUDA_SUCCESS;
}
