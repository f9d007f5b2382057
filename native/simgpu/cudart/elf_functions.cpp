#include "elf_functions.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace deepum::simgpu::cudart {

ElfFile::ElfFile(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status{};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    void* const mapped =
        mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      data_ = static_cast<const std::byte*>(mapped);
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  close(file);
  const auto* const header = at<ElfW(Ehdr)>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_phentsize != sizeof(ElfW(Phdr)))
    return;
  segments_ = at<ElfW(Phdr)>(header->e_phoff, header->e_phnum);
  if (segments_ != nullptr) header_ = header;
}

ElfFile::~ElfFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

const std::byte* ElfFile::loaded(std::uint64_t value, std::size_t bytes, unsigned flags) const {
  for (unsigned index = 0; header_ != nullptr && index < header_->e_phnum; ++index) {
    const ElfW(Phdr)& segment = segments_[index];
    if (segment.p_type != PT_LOAD || (segment.p_flags & flags) != flags || value < segment.p_vaddr)
      continue;
    const std::uint64_t offset = value - segment.p_vaddr;
    if (offset < segment.p_filesz && bytes <= segment.p_filesz - offset)
      return at<std::byte>(segment.p_offset + offset, bytes);
  }
  return nullptr;
}

const std::byte* ElfFile::code(std::uint64_t value, std::size_t bytes) const {
  return loaded(value, bytes, PF_X);
}

bool ElfFile::needs(std::string_view beginning) const {
  for (unsigned index = 0; header_ != nullptr && index < header_->e_phnum; ++index) {
    const ElfW(Phdr)& segment = segments_[index];
    if (segment.p_type != PT_DYNAMIC) continue;
    const std::uint64_t count = segment.p_filesz / sizeof(ElfW(Dyn));
    const auto* const entries = at<ElfW(Dyn)>(segment.p_offset, count);
    if (entries == nullptr) return false;
    std::uint64_t names = 0, bytes = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (entries[i].d_tag == DT_STRTAB) names = entries[i].d_un.d_ptr;
      if (entries[i].d_tag == DT_STRSZ) bytes = entries[i].d_un.d_val;
    }
    const std::byte* const first = loaded(names, bytes, 0);
    if (first == nullptr) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (entries[i].d_tag != DT_NEEDED) continue;
      if (text({reinterpret_cast<const char*>(first), bytes}, entries[i].d_un.d_val)
              .starts_with(beginning))
        return true;
    }
  }
  return false;
}

ElfFile::Symbols ElfFile::symbol_table() const {
  if (header_ == nullptr || header_->e_shentsize != sizeof(ElfW(Shdr))) return {};
  const auto* const sections = at<ElfW(Shdr)>(header_->e_shoff, header_->e_shnum);
  for (unsigned index = 0; sections != nullptr && index < header_->e_shnum; ++index) {
    const ElfW(Shdr)& table = sections[index];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header_->e_shnum) continue;
    const ElfW(Shdr)& strings = sections[table.sh_link];
    const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
    const auto* const first = at<ElfW(Sym)>(table.sh_offset, count);
    const auto* const names = at<char>(strings.sh_offset, strings.sh_size);
    if (first != nullptr && names != nullptr) return {first, count, {names, strings.sh_size}};
  }
  return {};
}

}  // namespace deepum::simgpu::cudart
