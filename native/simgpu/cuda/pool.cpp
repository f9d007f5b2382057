// Stream-ordered allocation: cuMemAllocAsync, cuMemFreeAsync, and the pools behind them.
#include "pools.hpp"

#include <algorithm>
#include <cstring>

#include "device.hpp"
#include "graphs.hpp"
#include "not_simulated.hpp"

namespace deepum::simgpu {
namespace {

// Blocks of one size class stand in for each other.
std::uint64_t size_class(const CUmemPoolHandle_st& pool, std::uint64_t bytes) {
  const bool small = pool.kind == MemoryKind::device && bytes <= Slabs::kLargest;
  const std::uint64_t unit = small ? Slabs::kAlignment : um_model::kBlockBytes;
  return (bytes + unit - 1) / unit * unit;
}

void give_back(State& state, CUmemPoolHandle_st& pool, std::size_t index) {
  CUmemPoolHandle_st::Freed block = std::move(pool.freed[index]);
  pool.freed.erase(pool.freed.begin() + static_cast<std::ptrdiff_t>(index));
  pool.reserved -= size_class(pool, block.allocation.bytes);
  state.engine.remove_event(block.event);
  const std::uint64_t base = block.allocation.base;
  state.memory.add(std::move(block.allocation));
  release_allocation(state, base);
}

void trim(State& state, um_model::Host host, CUmemPoolHandle_st& pool, std::uint64_t keep) {
  for (std::size_t i = 0; i < pool.freed.size() && pool.reserved > keep;) {
    if (state.engine.query(host, pool.freed[i].event)) {
      give_back(state, pool, i);
    } else {
      ++i;
    }
  }
}

CUresult allocate_new(State& state, CUmemPoolHandle_st& pool, CUcontext context,
                      std::uint64_t bytes, std::uint64_t& address) {
  switch (pool.kind) {
    case MemoryKind::managed:
      return allocate_managed(state, context, pool.device, bytes, CU_MEM_ATTACH_GLOBAL, &pool,
                              address);
    case MemoryKind::host:
      return allocate_host(state, context, bytes, CU_MEMHOSTALLOC_DEVICEMAP, &pool, address);
    default:
      return allocate_device(state, context, pool.device, bytes, &pool, address);
  }
}

}  // namespace

void trim_pools(State& state, um_model::Host host) {
  for (const void* const pointer : state.pools) {
    auto& pool = *static_cast<CUmemoryPool>(const_cast<void*>(pointer));
    if (pool.reserved > pool.threshold && !pool.freed.empty())
      trim(state, host, pool, std::max(pool.threshold, pool.used));
  }
}

void forget_in_pool(const Allocation& allocation) {
  if (allocation.pool == nullptr) return;
  const std::uint64_t size = size_class(*allocation.pool, allocation.bytes);
  allocation.pool->used -= size;
  allocation.pool->reserved -= size;
}

}  // namespace deepum::simgpu

using namespace deepum::simgpu;

namespace {

CUresult allocate(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, bool from_pool,
                  CUstream handle) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!from_pool) pool = current_pool(state, stream->context->device);
  if (!alive(state.pools, pool)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr)
    return not_simulated("stream-ordered allocation during stream capture");
  const std::uint64_t size = size_class(*pool, bytes);
  const auto reusable = std::find_if(
      pool->freed.begin(), pool->freed.end(), [&](const CUmemPoolHandle_st::Freed& freed) {
        return size_class(*pool, freed.allocation.bytes) == size &&
               (freed.stream == stream->unique || state.engine.query(call.host(), freed.event));
      });
  std::uint64_t address = 0;
  if (reusable != pool->freed.end()) {
    Allocation again = std::move(reusable->allocation);
    state.engine.remove_event(reusable->event);
    pool->freed.erase(reusable);
    again.bytes = bytes;
    again.context = call.context();
    again.id = state.next_id++;
    address = again.base;
    state.memory.add(std::move(again));
  } else {
    CUresult error = allocate_new(state, *pool, call.context(), bytes, address);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
      // What was freed may be had once the work that uses it is done.
      if (const CUresult failed = finish_device(call, call.device()); failed != CUDA_SUCCESS)
        return failed;
      for (const void* const other : state.pools)
        trim(state, call.host(), *static_cast<CUmemoryPool>(const_cast<void*>(other)), 0);
      error = allocate_new(state, *pool, call.context(), bytes, address);
    }
    if (error != CUDA_SUCCESS) return error;
    pool->reserved += size;
    pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  }
  pool->used += size;
  pool->used_high = std::max(pool->used_high, pool->used);
  *out = address;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return allocate(dptr, bytesize, nullptr, false, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
  return allocate(dptr, bytesize, pool, true, hStream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dptr == 0) return CUDA_SUCCESS;
  const Allocation* const allocation = state.memory.at(dptr);
  if (allocation == nullptr || allocation->kind == MemoryKind::registered || allocation->opens != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return not_simulated("stream-ordered free during stream capture");
  CUmemoryPool pool = allocation->pool;
  if (pool == nullptr) {
    // Not from a pool (cuMemAlloc): lent to the default one, which gives it back when the stream
    // gets there.
    if (allocation->kind != MemoryKind::device) return CUDA_ERROR_INVALID_VALUE;
    pool = default_pool(state, allocation->device);
    const std::uint64_t size = size_class(*pool, allocation->bytes);
    pool->used += size;
    pool->reserved += size;
  }
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  CUmemPoolHandle_st::Freed freed{*allocation, stream->unique, call.engine().add_event()};
  freed.allocation.pool = pool;
  state.memory.remove(dptr);
  call.engine().record(call.host(), freed.event, enter(call, stream));
  pool->used -= size_class(*pool, freed.allocation.bytes);
  pool->freed.push_back(std::move(freed));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_place(call.state(), poolProps->location, poolProps->allocType))
    return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return not_simulated("memory pool with shareable handles");
  CUmemoryPool const made = make_pool(call.state(), poolProps->location, poolProps->allocType);
  made->properties = *poolProps;
  *pool = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Call call(Need::initialised, Role::synchronise);
  if (!call) return call.error();
  State& state = call.state();
  if (!alive(state.pools, pool) || pool->standard) return CUDA_ERROR_INVALID_VALUE;
  forget_pool(state, pool);
  finish_device(call, pool->device);
  trim(state, call.host(), *pool, 0);
  // What is still allocated lives on, and is freed as memory of the default pool.
  std::vector<std::uint64_t> left;
  for (const auto& [base, allocation] : state.memory.all()) {
    if (allocation.pool == pool) left.push_back(base);
  }
  for (const std::uint64_t base : left) state.memory.at(base)->pool = nullptr;
  state.pools.erase(pool);
  delete pool;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  const Call call(Need::initialised, Role::synchronise);
  if (!call) return call.error();
  if (!alive(call.state().pools, pool)) return CUDA_ERROR_INVALID_VALUE;
  trim(call.state(), call.host(), *pool, minBytesToKeep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (value == nullptr || !alive(call.state().pools, pool)) return CUDA_ERROR_INVALID_VALUE;
  const auto wide = [&](std::uint64_t number) {
    return std::memcpy(value, &number, sizeof number), CUDA_SUCCESS;
  };
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      std::memcpy(value, &pool->flags[attr - 1], sizeof(int));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return wide(pool->threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return wide(pool->reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return wide(pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return wide(pool->used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return wide(pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (value == nullptr || !alive(call.state().pools, pool)) return CUDA_ERROR_INVALID_VALUE;
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      std::memcpy(&pool->flags[attr - 1], value, sizeof(int));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&pool->threshold, value, sizeof pool->threshold);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      pool->reserved_high = pool->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Every device reaches every pool: addresses are unified, and the model does not cost peer
// accesses.
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  return alive(call.state().pools, pool) && (map != nullptr || count == 0)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool,
                            CUmemLocation* location) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (flags == nullptr || location == nullptr || !alive(call.state().pools, memPool))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}
