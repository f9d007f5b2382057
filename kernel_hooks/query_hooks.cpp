// Programs see device memory where they asked for device memory.
#include "allocations.hpp"
#include "devices.hpp"
#include "memory.hpp"
#include "real_driver.hpp"
#include "sharing.hpp"

namespace deepum::hooks {
namespace {

using runtime::Allocation;

template <bool kPerThread>
CUresult on_cuMemGetInfo_v2(size_t* free, size_t* total) {
  size_t real_free = 0;
  size_t real_total = 0;
  const CUresult result = forward(real<false>().cuMemGetInfo_v2, &real_free, &real_total);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (const auto info = memory_info(current_device())) {
    real_free = info->free_bytes;
    real_total = info->total_bytes;
  }
  if (free) {
    *free = real_free;
  }
  if (total) {
    *total = real_total;
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const CUresult result = forward(real<false>().cuMemGetAddressRange_v2, base, bytes, address);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (const auto allocation = disguised(address)) {
    if (base) {
      *base = allocation->base;
    }
    if (bytes) {
      *bytes = allocation->bytes;
    }
  }
  return result;
}

// Puts right one answer of the driver. False: for device memory this question has no answer.
bool put_right(const Allocation& allocation, CUpointer_attribute attribute, void* data) noexcept {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(data) = 0;
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = static_cast<int>(allocation.device);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = allocation.base;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = allocation.bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return false;
    default:
      return true;
  }
}

template <bool kPerThread>
CUresult on_cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const CUresult result = forward(real<false>().cuPointerGetAttribute, data, attribute, address);
  if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
    tell_if_refused("CU_POINTER_ATTRIBUTE_P2P_TOKENS", address, result, kGpuDirect);
  }
  if (result != CUDA_SUCCESS || !data) {
    return result;
  }
  const auto allocation = disguised(address);
  if (!allocation || put_right(*allocation, attribute, data)) {
    return result;
  }
  return CUDA_ERROR_INVALID_VALUE;  // as the driver answers for the host pointer of device memory
}

template <bool kPerThread>
CUresult on_cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                   CUdeviceptr address) {
  const CUresult result =
      forward(real<false>().cuPointerGetAttributes, count, attributes, data, address);
  if (result != CUDA_SUCCESS || !attributes || !data) {
    return result;
  }
  const auto allocation = disguised(address);
  for (unsigned i = 0; allocation && i < count; ++i) {
    // This call never fails over one attribute: it answers with zeroes.
    if (data[i] && !put_right(*allocation, attributes[i], data[i])) {
      *static_cast<void**>(data[i]) = nullptr;
    }
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_QUERY
#include "exports.inc"
