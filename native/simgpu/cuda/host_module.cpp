// Host modules: kernels compiled for the CPU (../host_module.h).
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "modules.hpp"

namespace deepum::simgpu {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "which ELF machine is this?"
#endif

bool write_all(int file, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(file, data, bytes);
    if (written <= 0) return false;
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

bool is_host_elf(const void* image) noexcept {
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return false;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine &&
         header.e_type == ET_DYN;
}

std::size_t elf_bytes(const void* image) noexcept {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  const auto* const bytes = static_cast<const char*>(image);
  std::size_t end = std::max<std::size_t>(
      sizeof header, header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum);
  for (int i = 0; i < header.e_shnum && header.e_shentsize >= sizeof(Elf64_Shdr); ++i) {
    Elf64_Shdr section;
    std::memcpy(
        &section,
        bytes + header.e_shoff + std::size_t{header.e_shentsize} * static_cast<std::size_t>(i),
        sizeof section);
    if (section.sh_type != SHT_NOBITS)
      end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  for (int i = 0; i < header.e_phnum && header.e_phentsize >= sizeof(Elf64_Phdr); ++i) {
    Elf64_Phdr segment;
    std::memcpy(
        &segment,
        bytes + header.e_phoff + std::size_t{header.e_phentsize} * static_cast<std::size_t>(i),
        sizeof segment);
    end = std::max<std::size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

const deepum_host_module_table* open_host_module(const void* image, std::size_t bytes,
                                                 void** handle, CUresult* error) {
  *error = CUDA_ERROR_INVALID_IMAGE;
  // Through an anonymous file, so that each load has variables of its own as each load of a module
  // has.
  const int file = memfd_create("deepum-host-module", MFD_CLOEXEC);
  if (file < 0) {
    *error = CUDA_ERROR_OPERATING_SYSTEM;
    return nullptr;
  }
  *handle = nullptr;
  if (write_all(file, static_cast<const char*>(image), bytes)) {
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (*handle == nullptr)
      std::fprintf(stderr, "deepum-sim: host module not loadable: %s\n", dlerror());
  }
  close(file);
  if (*handle == nullptr) return nullptr;
  const auto* const table =
      static_cast<const deepum_host_module_table*>(dlsym(*handle, "deepum_host_module"));
  if (table == nullptr || table->magic != DEEPUM_HOST_MODULE_MAGIC ||
      table->version != DEEPUM_HOST_MODULE_VERSION) {
    std::fprintf(
        stderr,
        "deepum-sim: shared object given as a module has no deepum_host_module of version %u\n",
        DEEPUM_HOST_MODULE_VERSION);
    dlclose(*handle);
    *handle = nullptr;
    return nullptr;
  }
  *error = CUDA_SUCCESS;
  return table;
}

ParameterLayout host_layout(const deepum_host_kernel& kernel) {
  ParameterLayout layout{};
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
    const std::uint32_t size = kernel.parameter_sizes[i];
    std::uint32_t alignment = 1;
    while (alignment < size && alignment < 8) alignment *= 2;
    end = (end + alignment - 1) / alignment * alignment;
    layout.parameters.push_back({end, size});
    end += size;
  }
  layout.bytes = end;
  return layout;
}

}  // namespace deepum::simgpu

CUmod_st::~CUmod_st() {
  functions.clear();
  if (host_handle != nullptr) dlclose(host_handle);
}
