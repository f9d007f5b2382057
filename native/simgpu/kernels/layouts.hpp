// Parameter layouts of the kernels in one piece of device code.
#pragma once

#include <map>

#include "bytes.hpp"
#include "image.hpp"

namespace deepum::simgpu {

using Layouts = std::map<std::string, ParameterLayout, std::less<>>;

// From the .nv.info.NAME sections of a cubin. Throws Malformed.
Layouts layouts_of_cubin(Bytes elf);
// From the `.entry NAME (.param ...)` declarations of PTX text. Throws Malformed.
Layouts layouts_of_ptx(std::string_view text);
// Bytes of an ELF image in memory whose size is not known otherwise.
std::uint64_t elf_image_bytes(const void* elf);

}  // namespace deepum::simgpu
