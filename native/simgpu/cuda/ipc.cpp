// Memory and events that other processes open. Each process has a driver, a clock and a card of its
// own here; what two of them share is the data of plain device memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "device.hpp"
#include "memory_calls.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

constexpr char kMemory[8] = {'d', 'e', 'e', 'p', 'u', 'm', 'I', 'M'};
constexpr char kEvent[8] = {'d', 'e', 'e', 'p', 'u', 'm', 'I', 'E'};

struct MemoryHandle {
  char magic[8];
  std::int32_t process, file;
  std::uint64_t id;      // of the file
  std::uint64_t offset;  // of the allocation in it
  std::uint64_t bytes;
  std::int32_t device;
};
static_assert(sizeof(MemoryHandle) <= CU_IPC_HANDLE_SIZE);

struct EventHandle {
  char magic[8];
  std::int32_t process;
};
static_assert(sizeof(EventHandle) <= CU_IPC_HANDLE_SIZE);

template <typename Known, typename Handle>
Known read_handle(const Handle& handle) {
  Known known{};
  std::memcpy(&known, handle.reserved, sizeof known);
  return known;
}

template <typename Known, typename Handle>
void write_handle(const Known& known, Handle* handle) {
  *handle = {};
  std::memcpy(handle->reserved, &known, sizeof known);
}

// The memfd behind a handle, if it is still the one that was meant; -1: its process is gone, or has
// freed the memory.
int open_file(const MemoryHandle& known, std::uint64_t& bytes) {
  const std::string path =
      "/proc/" + std::to_string(known.process) + "/fd/" + std::to_string(known.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return -1;
  struct stat facts{};
  if (fstat(file, &facts) != 0 || facts.st_ino != known.id) {
    close(file);
    return -1;
  }
  bytes = static_cast<std::uint64_t>(facts.st_size);
  return file;
}

Allocation* opened_before(State& state, const MemoryHandle& known) {
  for (const auto& [base, allocation] : state.memory.all()) {
    if (allocation.opens != 0 && allocation.shared_id == known.id &&
        base % um_model::kBlockBytes == known.offset)
      return state.memory.at(base);
  }
  return nullptr;
}

}  // namespace

// The handle stands for the whole allocation, wherever in it the address lies: as with the real
// driver (https://github.com/openucx/ucx/issues/11724).
CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  State& state = call.state();
  const Allocation* const allocation = state.memory.find(dptr);
  // Managed memory (https://github.com/cupy/cupy/issues/9306) and that of pools
  // (https://github.com/chelsea0x3b/cudarc/issues/521) has none.
  if (pHandle == nullptr || allocation == nullptr || allocation->kind != MemoryKind::device ||
      allocation->pool != nullptr || allocation->opens != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t first = allocation->base / um_model::kBlockBytes * um_model::kBlockBytes;
  const AddressSpace::Shared* const shared = state.memory.share(
      first, allocation->mapped != 0 ? allocation->mapped : um_model::kBlockBytes);
  if (shared == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  MemoryHandle known{};
  std::memcpy(known.magic, kMemory, sizeof kMemory);
  known.process = getpid();
  known.file = shared->file;
  known.id = shared->id;
  known.offset = allocation->base - first;
  known.bytes = allocation->bytes;
  known.device = allocation->device;
  write_handle(known, pHandle);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  const Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  const auto known = read_handle<MemoryHandle>(handle);
  if (pdptr == nullptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      std::memcmp(known.magic, kMemory, sizeof kMemory) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  // A process does not open its own.
  if (known.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!valid_device(state, known.device)) return CUDA_ERROR_INVALID_DEVICE;
  if (Allocation* const again = opened_before(state, known)) {
    ++again->opens;
    *pdptr = again->base;
    return CUDA_SUCCESS;
  }
  std::uint64_t mapped = 0;
  const int file = open_file(known, mapped);
  if (file < 0) return CUDA_ERROR_INVALID_HANDLE;
  std::uint64_t address = 0;
  CUresult error = CUDA_ERROR_INVALID_VALUE;
  if (known.offset < um_model::kBlockBytes && known.offset < mapped &&
      known.bytes <= mapped - known.offset) {
    error = open_shared(state, call.context(),
                        {file, known.id, mapped, known.offset, known.bytes, known.device}, address);
  }
  if (error != CUDA_SUCCESS) {
    close(file);
    return error;
  }
  *pdptr = address;
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  Allocation* allocation = call.state().memory.at(dptr);
  if (allocation == nullptr || allocation->opens == 0) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->opens > 1) {
    --allocation->opens;
    return CUDA_SUCCESS;
  }
  finish_device(call, allocation->device);
  // Another thread may have closed it while this one waited.
  allocation = call.state().memory.at(dptr);
  if (allocation == nullptr || allocation->opens == 0) return CUDA_ERROR_INVALID_VALUE;
  release_allocation(call.state(), dptr);
  return CUDA_SUCCESS;
}

// An event for other processes is complete once it is recorded (cuEventRecord), so what they open
// is an event that always is.
CUresult cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().events, event) || (event->flags & CU_EVENT_INTERPROCESS) == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  EventHandle known{};
  std::memcpy(known.magic, kEvent, sizeof kEvent);
  known.process = getpid();
  write_handle(known, pHandle);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  {
    const Call call(Need::context, Role::neutral);
    if (!call) return call.error();
    const auto known = read_handle<EventHandle>(handle);
    if (phEvent == nullptr || std::memcmp(known.magic, kEvent, sizeof kEvent) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (known.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  }
  return cuEventCreate(phEvent, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
}

// The simulated cards have no GPUDirect RDMA (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0).
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const Allocation* const allocation = call.state().memory.find(dptr);
  if (handle == nullptr || size == 0 || allocation == nullptr ||
      handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || allocation->kind != MemoryKind::device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
