#include <utility>
#include <vector>

#include "memory_calls.hpp"

namespace deepum::simgpu {
namespace {

// Plain device memory in use, and the slabs of small pieces; guarded by the driver's lock like all
// state.
struct DeviceMemory {
  std::vector<std::uint64_t> used;
  Slabs slabs;
};

DeviceMemory& device_memory(const State& state) {
  static auto* const made = new DeviceMemory;
  made->used.resize(state.devices.size());
  return *made;
}

std::uint64_t whole_blocks(std::uint64_t bytes) {
  return (bytes + um_model::kBlockBytes - 1) / um_model::kBlockBytes * um_model::kBlockBytes;
}

// New whole blocks of plain device memory; 0 when the card is full.
std::uint64_t take_blocks(State& state, int device, std::uint64_t mapped) {
  std::uint64_t& used = device_memory(state).used[static_cast<std::size_t>(device)];
  const std::uint64_t all = state.devices[static_cast<std::size_t>(device)].memory_bytes;
  if (mapped > all || used > all - mapped || !state.engine.holds(0, 0, mapped)) return 0;
  const std::uint64_t base = state.memory.take(mapped, true);
  if (base == 0) return 0;
  used += mapped;
  state.engine.map_device({base, mapped}, device);
  return base;
}

void give_blocks_back(State& state, int device, std::uint64_t base, std::uint64_t mapped) {
  device_memory(state).used[static_cast<std::size_t>(device)] -= mapped;
  state.engine.unmap(base);
  state.memory.give_back(base, mapped);
}

Allocation described(State& state, std::uint64_t base, std::uint64_t bytes, std::uint64_t mapped,
                     MemoryKind kind, int device, CUcontext context, unsigned flags,
                     CUmemoryPool pool) {
  Allocation made{};
  made.base = base;
  made.bytes = bytes;
  made.mapped = mapped;
  made.kind = kind;
  made.device = device;
  made.context = context;
  made.flags = flags;
  made.id = state.next_id++;
  made.pool = pool;
  return made;
}

}  // namespace

CUresult allocate_device(State& state, CUcontext context, int device, std::uint64_t bytes,
                         CUmemoryPool pool, std::uint64_t& address) {
  if (bytes > kMostBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t mapped = 0;
  if (bytes <= Slabs::kLargest) {
    Slabs& slabs = device_memory(state).slabs;
    auto piece = slabs.take(bytes, device);
    if (!piece) {
      const std::uint64_t slab = take_blocks(state, device, um_model::kBlockBytes);
      if (slab == 0) return CUDA_ERROR_OUT_OF_MEMORY;
      slabs.add(slab, device);
      piece = slabs.take(bytes, device);
    }
    address = piece.value_or(0);
  } else {
    mapped = whole_blocks(bytes);
    address = take_blocks(state, device, mapped);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  state.memory.add(
      described(state, address, bytes, mapped, MemoryKind::device, device, context, 0, pool));
  return CUDA_SUCCESS;
}

CUresult open_shared(State& state, CUcontext context, const SharedMemory& of,
                     std::uint64_t& address) {
  const std::uint64_t base = take_blocks(state, of.device, of.mapped);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!state.memory.join(base, of.mapped, of.file, of.id)) {
    give_blocks_back(state, of.device, base, of.mapped);
    return CUDA_ERROR_MAP_FAILED;
  }
  address = base + of.offset;
  Allocation opened = described(state, address, of.bytes, of.mapped, MemoryKind::device, of.device,
                                context, 0, nullptr);
  opened.opens = 1;
  opened.shared_id = of.id;
  state.memory.add(std::move(opened));
  return CUDA_SUCCESS;
}

CUresult allocate_managed(State& state, CUcontext context, int device, std::uint64_t bytes,
                          unsigned flags, CUmemoryPool pool, std::uint64_t& address) {
  if (bytes > kMostBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t mapped = whole_blocks(state.managed_offset + bytes);
  if (!state.engine.holds(mapped, 0, 0)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t base = state.memory.take(mapped, true);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  state.engine.map_managed({base, mapped}, device);
  address = base + state.managed_offset;
  state.memory.add(
      described(state, address, bytes, mapped, MemoryKind::managed, device, context, flags, pool));
  return CUDA_SUCCESS;
}

CUresult allocate_host(State& state, CUcontext context, std::uint64_t bytes, unsigned flags,
                       CUmemoryPool pool, std::uint64_t& address) {
  if (bytes > kMostBytes || !state.engine.holds(0, whole_blocks(bytes), 0))
    return CUDA_ERROR_OUT_OF_MEMORY;
  address = state.memory.take(bytes, false);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  state.engine.pin(whole_blocks(bytes));
  state.memory.add(described(state, address, bytes, whole_blocks(bytes), MemoryKind::host, 0,
                             context, flags, pool));
  return CUDA_SUCCESS;
}

void release_allocation(State& state, std::uint64_t base) {
  const Allocation* const found = state.memory.at(base);
  if (found == nullptr) return;
  const Allocation freed = *found;
  state.memory.remove(base);
  state.blocks.forget(freed.range());
  state.written_pages.remove({freed.base, std::max(freed.mapped, freed.bytes)});
  switch (freed.kind) {
    case MemoryKind::managed:
      state.engine.unmap(freed.base - state.managed_offset);
      state.memory.give_back(freed.base - state.managed_offset, freed.mapped);
      return;
    case MemoryKind::host:
      state.engine.unpin(freed.mapped);
      state.memory.give_back(freed.base, freed.mapped);
      return;
    case MemoryKind::registered:
      return;
    case MemoryKind::device:
      break;
  }
  if (freed.mapped != 0) {
    // Whole blocks begin with the allocation, but for small ones of other processes.
    give_blocks_back(state, freed.device,
                     freed.base / um_model::kBlockBytes * um_model::kBlockBytes, freed.mapped);
  } else if (const auto slab = device_memory(state).slabs.give_back(freed.base, freed.bytes)) {
    give_blocks_back(state, freed.device, *slab, um_model::kBlockBytes);
  }
}

}  // namespace deepum::simgpu
