// Which pool a place has by default, and which is in use there.
#include <map>
#include <utility>

#include "device.hpp"
#include "pools.hpp"

namespace deepum::simgpu {
namespace {

struct Place {
  CUmemoryPool standard = nullptr, current = nullptr;
};
using Key = std::pair<CUmemAllocationType, std::pair<CUmemLocationType, int>>;

std::map<Key, Place>& places() {
  static auto* const known = new std::map<Key, Place>;  // guarded by the driver's lock
  return *known;
}

Key key_of(const CUmemLocation& location, CUmemAllocationType type) {
  const bool numbered = location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
                        location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return {type, {location.type, numbered ? location.id : 0}};
}

// The place must be valid.
Place& place_of(State& state, const CUmemLocation& location, CUmemAllocationType type) {
  Place& place = places()[key_of(location, type)];
  if (place.standard == nullptr) {
    place.standard = place.current = make_pool(state, location, type);
    place.standard->standard = true;
  }
  return place;
}

CUmemLocation on_device(int device) { return {CU_MEM_LOCATION_TYPE_DEVICE, device}; }

}  // namespace

bool valid_place(const State& state, const CUmemLocation& location, CUmemAllocationType type) {
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED) return false;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return valid_device(state, location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return true;
    case CU_MEM_LOCATION_TYPE_NONE:
      return type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    default:
      return false;
  }
}

CUmemoryPool make_pool(State& state, const CUmemLocation& location, CUmemAllocationType type) {
  auto* const pool = new CUmemPoolHandle_st;
  const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  pool->properties.allocType = type;
  pool->properties.location = location;
  pool->device = device ? location.id : 0;
  pool->kind = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? MemoryKind::managed
               : device                               ? MemoryKind::device
                                                      : MemoryKind::host;
  state.pools.insert(pool);
  return pool;
}

CUmemoryPool default_pool(State& state, int device) {
  return place_of(state, on_device(device), CU_MEM_ALLOCATION_TYPE_PINNED).standard;
}
CUmemoryPool current_pool(State& state, int device) {
  return place_of(state, on_device(device), CU_MEM_ALLOCATION_TYPE_PINNED).current;
}

void forget_pool(State&, CUmemoryPool pool) {
  for (auto& [key, place] : places()) {
    if (place.current == pool) place.current = place.standard;
  }
}

}  // namespace deepum::simgpu

using namespace deepum::simgpu;

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                                CUmemAllocationType type) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pool_out == nullptr || location == nullptr || !valid_place(call.state(), *location, type))
    return CUDA_ERROR_INVALID_VALUE;
  *pool_out = place_of(call.state(), *location, type).standard;
  return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pool == nullptr || location == nullptr || !valid_place(call.state(), *location, type))
    return CUDA_ERROR_INVALID_VALUE;
  *pool = place_of(call.state(), *location, type).current;
  return CUDA_SUCCESS;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  State& state = call.state();
  if (location == nullptr || !valid_place(state, *location, type) || !alive(state.pools, pool))
    return CUDA_ERROR_INVALID_VALUE;
  if (key_of(pool->properties.location, pool->properties.allocType) != key_of(*location, type))
    return CUDA_ERROR_INVALID_VALUE;
  place_of(state, *location, type).current = pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = default_pool(call.state(), dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = current_pool(call.state(), dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, dev};
  {
    const Call call(Need::initialised, Role::neutral);
    if (!call) return call.error();
    if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  }
  return cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}
