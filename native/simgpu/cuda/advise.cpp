// Advice about managed memory, and what may be asked of a range.
#include <algorithm>
#include <cstring>

#include "device.hpp"
#include "graphs.hpp"
#include "managed.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

CUresult advise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                CUmemLocation location) {
  const Call call(Need::context, Role::migration);
  if (!call) return call.error();
  State& state = call.state();
  um_model::Range range{};
  if (const CUresult error = managed_range(state, address, bytes, range); error != CUDA_SUCCESS)
    return error;
  int device = um_model::kCpu;
  const bool places = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                      advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                      advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (places && !location_of(state, location, device)) return CUDA_ERROR_INVALID_DEVICE;
  using um_model::Advice;
  Advice meaning;
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
      meaning = Advice::read_mostly;
      for_allocations(state, range, [](Allocation& a) { a.read_mostly = true; });
      break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      meaning = Advice::unset_read_mostly;
      for_allocations(state, range, [](Allocation& a) { a.read_mostly = false; });
      break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      meaning = Advice::preferred_location;
      for_allocations(state, range, [&](Allocation& a) { a.preferred = location; });
      break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      meaning = Advice::unset_preferred_location;
      for_allocations(state, range,
                      [](Allocation& a) { a.preferred = {CU_MEM_LOCATION_TYPE_INVALID, 0}; });
      break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      meaning = Advice::accessed_by;
      for_allocations(state, range, [&](Allocation& a) {
        if (std::find(a.accessed_by.begin(), a.accessed_by.end(), device) == a.accessed_by.end())
          a.accessed_by.push_back(device);
      });
      break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      meaning = Advice::unset_accessed_by;
      for_allocations(state, range, [&](Allocation& a) { std::erase(a.accessed_by, device); });
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  call.engine().advise(call.host(), {&range, 1}, meaning, device);
  return CUDA_SUCCESS;
}

// CU_DEVICE_CPU, CU_DEVICE_INVALID or an ordinal.
int ordinal(CUmemLocation location) {
  if (location.type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

CUresult range_attribute(void* data, std::size_t size, CUmem_range_attribute attribute,
                         const Allocation& a) {
  const auto answer = [&](int value) {
    if (size != sizeof value) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return answer(a.read_mostly ? 1 : 0);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return answer(ordinal(a.preferred));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return answer(ordinal(a.last_prefetch));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return answer(static_cast<int>(a.preferred.type));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return answer(a.preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return answer(static_cast<int>(a.last_prefetch.type));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return answer(a.last_prefetch.id);
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      if (size == 0 || size % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
      for (std::size_t i = 0; i < size / sizeof(int); ++i) {
        const int value = i < a.accessed_by.size() ? a.accessed_by[i] : CU_DEVICE_INVALID;
        std::memcpy(static_cast<char*>(data) + i * sizeof(int), &value, sizeof value);
      }
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return advise(devPtr, count, advice, location_from_device(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
  return advise(devPtr, count, advice, location);
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  um_model::Range range{};
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = managed_range(call.state(), devPtr, count, range);
      error != CUDA_SUCCESS)
    return error;
  // Kept for each allocation, not for each page: the answer is right for ranges that were advised
  // as a whole.
  return range_attribute(data, dataSize, attribute, *call.state().memory.find(devPtr));
}

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
  if (data == nullptr || dataSizes == nullptr || attributes == nullptr || numAttributes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numAttributes; ++i) {
    const CUresult error =
        cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}
