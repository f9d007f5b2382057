// Pinned host memory: allocated here or registered by the program.
#include "graphs.hpp"
#include "memory_calls.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

CUresult allocate_pinned(void** pp, size_t bytesize, unsigned flags) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  if (pp == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  std::uint64_t address = 0;
  const CUresult error =
      allocate_host(call.state(), call.context(), bytesize, flags, nullptr, address);
  if (error == CUDA_SUCCESS) *pp = reinterpret_cast<void*>(address);
  return error;
}

bool pinned(const Allocation* allocation) {
  return allocation != nullptr &&
         (allocation->kind == MemoryKind::host || allocation->kind == MemoryKind::registered);
}

}  // namespace

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return allocate_pinned(pp, bytesize, CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((Flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return allocate_pinned(pp, bytesize, Flags);
}

CUresult cuMemFreeHost(void* p) {
  Call call(Need::initialised, Role::program);
  if (!call) return call.error();
  const auto address = reinterpret_cast<std::uint64_t>(p);
  const Allocation* const allocation = call.state().memory.at(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::host)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  finish_all_devices(call);
  // Another thread freed it while this one waited.
  if (call.state().memory.at(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  release_allocation(call.state(), address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  const Call call(Need::context, Role::migration);
  if (!call) return call.error();
  if (p == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  State& state = call.state();
  const auto address = reinterpret_cast<std::uint64_t>(p);
  if (state.memory.find(address) != nullptr || state.memory.find(address + bytesize - 1) != nullptr)
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (!state.engine.holds(0, bytesize, 0)) return CUDA_ERROR_OUT_OF_MEMORY;
  state.engine.pin(bytesize);
  Allocation made{};
  made.base = address;
  made.bytes = bytesize;
  made.kind = MemoryKind::registered;
  made.context = call.context();
  made.flags = Flags;
  made.id = state.next_id++;
  state.memory.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
  return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) {
  Call call(Need::initialised, Role::program);
  if (!call) return call.error();
  const auto address = reinterpret_cast<std::uint64_t>(p);
  const Allocation* const allocation = call.state().memory.at(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const std::uint64_t bytes = allocation->bytes;
  finish_all_devices(call);
  // Another thread did it meanwhile.
  if (call.state().memory.at(address) == nullptr) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  call.state().engine.unpin(bytes);
  call.state().memory.remove(address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const auto address = reinterpret_cast<std::uint64_t>(p);
  if (pdptr == nullptr || Flags != 0 || !pinned(call.state().memory.find(address)))
    return CUDA_ERROR_INVALID_VALUE;
  *pdptr = address;  // unified addresses
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const Allocation* const allocation = call.state().memory.find(reinterpret_cast<std::uint64_t>(p));
  if (pFlags == nullptr || !pinned(allocation)) return CUDA_ERROR_INVALID_VALUE;
  *pFlags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
