#include <sys/mman.h>

#include <algorithm>

#include "memory.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::uint64_t kTiB = 1ull << 40;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

AddressSpace::Arena AddressSpace::reserve(std::uint64_t hint, std::uint64_t bytes) {
  // Inaccessible and not reserved: costs nothing but addresses. Halved until the system grants it.
  for (; bytes >= (1ull << 34); bytes /= 2) {
    void* const mapping = mmap(reinterpret_cast<void*>(hint), bytes, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) continue;
    const auto begin = reinterpret_cast<std::uint64_t>(mapping);
    const std::uint64_t first = round_up(begin, um_model::kBlockBytes);
    return {first, begin + bytes, first, {}};
  }
  return {};
}

AddressSpace::AddressSpace()
    : gpu_(reserve(0x200000000000ull, 8 * kTiB)), host_(reserve(0x300000000000ull, kTiB)) {}

std::uint64_t AddressSpace::take(std::uint64_t bytes, bool gpu) {
  Arena& arena = gpu ? gpu_ : host_;
  if (bytes == 0 || bytes > arena.end - arena.begin) return 0;
  const std::uint64_t mapped = round_up(bytes, um_model::kBlockBytes);
  std::uint64_t base = 0;
  for (auto hole = arena.holes.begin(); hole != arena.holes.end(); ++hole) {
    if (hole->second < mapped) continue;
    base = hole->first;
    const std::uint64_t rest = hole->second - mapped;
    arena.holes.erase(hole);
    if (rest != 0) arena.holes.emplace(base + mapped, rest);
    break;
  }
  if (base == 0) {
    if (arena.end - arena.next < mapped) return 0;
    base = arena.next;
    arena.next += mapped;
  }
  void* const mapping = mmap(reinterpret_cast<void*>(base), mapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapping == MAP_FAILED) {
    give_back(base, mapped);
    return 0;
  }
  // A touched byte must not cost 2 MiB of the host's memory.
  madvise(mapping, mapped, MADV_NOHUGEPAGE);
  madvise(mapping, mapped, MADV_DONTDUMP);
  return base;
}

void AddressSpace::give_back(std::uint64_t base, std::uint64_t mapped) {
  void* const emptied = mmap(reinterpret_cast<void*>(base), mapped, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (emptied == MAP_FAILED) return;  // not to be used again
  forget_shared(base);
  Arena& arena = base >= gpu_.begin && base < gpu_.end ? gpu_ : host_;
  auto after = arena.holes.lower_bound(base);
  if (after != arena.holes.end() && after->first == base + mapped) {
    mapped += after->second;
    after = arena.holes.erase(after);
  }
  if (after != arena.holes.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == base) {
      before->second += mapped;
      return;
    }
  }
  arena.holes.emplace(base, mapped);
}

Allocation& AddressSpace::add(Allocation allocation) {
  return allocations_.insert_or_assign(allocation.base, std::move(allocation)).first->second;
}

void AddressSpace::remove(std::uint64_t base) { allocations_.erase(base); }

Allocation* AddressSpace::find(std::uint64_t address) {
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return nullptr;
  --found;
  return address < found->second.end() ? &found->second : nullptr;
}

Allocation* AddressSpace::at(std::uint64_t base) {
  const auto found = allocations_.find(base);
  return found != allocations_.end() ? &found->second : nullptr;
}

bool AddressSpace::owns(std::uint64_t address) const {
  return (address >= gpu_.begin && address < gpu_.end) ||
         (address >= host_.begin && address < host_.end);
}

std::optional<std::uint64_t> Slabs::take(std::uint64_t bytes, int device) {
  const std::uint64_t size = round_up(bytes, kAlignment);
  for (auto& [base, slab] : slabs_) {
    if (slab.device != device) continue;
    for (auto hole = slab.holes.begin(); hole != slab.holes.end(); ++hole) {
      if (hole->second < size) continue;
      const std::uint64_t address = hole->first, rest = hole->second - size;
      slab.holes.erase(hole);
      if (rest != 0) slab.holes.emplace(address + size, rest);
      slab.used += size;
      return address;
    }
  }
  return std::nullopt;
}

void Slabs::add(std::uint64_t slab, int device) {
  slabs_.emplace(slab, Slab{device, 0, {{slab, um_model::kBlockBytes}}});
}

std::optional<std::uint64_t> Slabs::give_back(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t base = address / um_model::kBlockBytes * um_model::kBlockBytes;
  std::uint64_t size = round_up(bytes, kAlignment);
  const auto found = slabs_.find(base);
  if (found == slabs_.end()) return std::nullopt;
  Slab& slab = found->second;
  slab.used -= size;
  if (slab.used == 0) {
    slabs_.erase(found);
    return base;
  }
  auto after = slab.holes.lower_bound(address);
  if (after != slab.holes.end() && after->first == address + size) {
    size += after->second;
    after = slab.holes.erase(after);
  }
  if (after != slab.holes.begin() &&
      std::prev(after)->first + std::prev(after)->second == address) {
    std::prev(after)->second += size;
  } else {
    slab.holes.emplace(address, size);
  }
  return std::nullopt;
}

}  // namespace deepum::simgpu
