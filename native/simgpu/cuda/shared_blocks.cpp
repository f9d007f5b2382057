// Blocks that several processes map: a memfd each, which the others find under /proc by this
// process's id and the descriptor. It ends with the last mapping; nothing is left behind in the
// file system.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "memory.hpp"
#include "page_map.hpp"

namespace deepum::simgpu {
namespace {

// Writes the pages that may hold data; the others are holes, which read as zeros too.
bool write_pages(int file, std::uint64_t base, std::uint64_t bytes) {
  std::array<bool, kPagesAtOnce> present{};
  for (std::uint64_t at = 0; at < bytes; at += kPagesAtOnce * kPage) {
    const std::uint64_t count = std::min(kPagesAtOnce, (bytes - at) / kPage);
    if (!read_page_map(base + at, count, present)) present.fill(true);
    for (std::uint64_t page = 0; page < count; ++page) {
      const std::uint64_t offset = at + page * kPage;
      if (present[page] && pwrite(file, reinterpret_cast<const void*>(base + offset), kPage,
                                  static_cast<off_t>(offset)) != ssize_t{kPage})
        return false;
    }
  }
  return true;
}

bool map_file(int file, std::uint64_t base, std::uint64_t bytes) {
  void* const mapping = mmap(reinterpret_cast<void*>(base), bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
  if (mapping == MAP_FAILED) return false;
  madvise(mapping, bytes, MADV_DONTDUMP);
  return true;
}

}  // namespace

const AddressSpace::Shared* AddressSpace::share(std::uint64_t base, std::uint64_t bytes) {
  if (const auto known = shared_.find(base); known != shared_.end()) return &known->second;
  const int file = memfd_create("deepum-sim", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat facts{};
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0 || fstat(file, &facts) != 0 ||
      !write_pages(file, base, bytes) || !map_file(file, base, bytes)) {
    close(file);
    return nullptr;
  }
  return &shared_.insert_or_assign(base, Shared{file, facts.st_ino, base, bytes}).first->second;
}

bool AddressSpace::join(std::uint64_t base, std::uint64_t bytes, int file, std::uint64_t id) {
  if (!map_file(file, base, bytes)) return false;
  shared_.insert_or_assign(base, Shared{file, id, base, bytes});
  return true;
}

void AddressSpace::forget_shared(std::uint64_t base) {
  const auto found = shared_.find(base);
  if (found == shared_.end()) return;
  close(found->second.file);
  shared_.erase(found);
}

bool AddressSpace::sparse(std::uint64_t address) const {
  if (!owns(address)) return false;
  const auto after = shared_.upper_bound(address);
  return after == shared_.begin() ||
         address >= std::prev(after)->second.base + std::prev(after)->second.bytes;
}

}  // namespace deepum::simgpu
