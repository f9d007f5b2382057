// The functions that an ELF object has for itself, as its file's symbol table names them: what the
// dynamic loader does not know.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace deepum::simgpu::cudart {

// A file of this machine's ELF, mapped for reading. Every offset in it is checked: a damaged file
// has fewer symbols, and nothing else.
class ElfFile {
 public:
  explicit ElfFile(const char* path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // Whether it asks the loader for a library whose name begins so.
  bool needs(std::string_view beginning) const;

  struct Function {
    std::string_view name;
    std::uint64_t value;  // its address, before the object was moved to where it is loaded
    std::uint64_t bytes;
  };
  // Of all functions that it defines and does not export, those whose name `wanted` answers true
  // for. None if it was stripped.
  template <typename Wanted>
  std::vector<Function> own_functions(Wanted wanted) const {
    std::vector<Function> found;
    const Symbols symbols = symbol_table();
    for (std::size_t index = 0; index < symbols.count; ++index) {
      const ElfW(Sym)& symbol = symbols.first[index];
      const bool own = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ||
                       ELF64_ST_VISIBILITY(symbol.st_other) == STV_HIDDEN;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
          symbol.st_size == 0 || !own)
        continue;
      const std::string_view name = text(symbols.names, symbol.st_name);
      if (wanted(name)) found.push_back({name, symbol.st_value, symbol.st_size});
    }
    return found;
  }

  // What the file has for this address, in a segment that is loaded as code; null if it is none, or
  // if fewer bytes are left of it.
  const std::byte* code(std::uint64_t value, std::size_t bytes) const;

 private:
  struct Symbols {
    const ElfW(Sym) * first = nullptr;
    std::size_t count = 0;
    std::string_view names;
  };
  Symbols symbol_table() const;
  const std::byte* loaded(std::uint64_t value, std::size_t bytes, unsigned flags) const;
  // `count` entries at that offset, or null.
  template <typename T>
  const T* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T) || offset % alignof(T) != 0)
      return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
  }
  static std::string_view text(std::string_view names, std::uint64_t offset) {
    if (offset >= names.size()) return {};
    const std::string_view rest = names.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }

  const std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  const ElfW(Ehdr) * header_ = nullptr;  // null: not such a file
  const ElfW(Phdr) * segments_ = nullptr;
};

}  // namespace deepum::simgpu::cudart
