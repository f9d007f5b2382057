// Modules, libraries and their kernels. A CUlibrary and the CUmodule it holds are one object, and
// so are a CUkernel and its CUfunction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../host_module.h"
#include "image.hpp"
#include "state.hpp"

struct CUfunc_st;

struct CUmod_st {
  // Nullptr: a library, which belongs to no context.
  CUcontext context = nullptr;
  // Our copy of the image: the program may free its own after loading.
  std::vector<std::uint8_t> storage;
  std::unique_ptr<deepum::simgpu::Image> image;    // compiled code, or
  const deepum_host_module_table* host = nullptr;  // kernels for the CPU
  void* host_handle = nullptr;                     // of dlopen
  std::map<std::string, std::unique_ptr<CUfunc_st>, std::less<>> functions;
  bool enumerated = false;
  ~CUmod_st();
};

namespace deepum::simgpu {
// What cuLaunchGrid launches with (old_launch.cpp).
struct OldLaunch {
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<std::uint8_t> parameters;
};
}  // namespace deepum::simgpu

struct CUfunc_st {
  CUmodule module = nullptr;
  std::string name;
  const deepum_host_kernel* host = nullptr;
  std::optional<deepum::simgpu::ParameterLayout> layout;
  bool layout_read = false;
  std::string why;  // why there is no layout
  int max_dynamic_shared = 0;
  int carveout = -1;
  deepum::simgpu::OldLaunch old_launch;
};

namespace deepum::simgpu {

// Reads the layout when it is needed first; false: it cannot be parsed, which has been said.
bool read_layout(State& state, CUfunction function);

// The bytes of `parameters` (one pointer a parameter) packed as the layout says.
std::vector<std::uint8_t> pack(const ParameterLayout& layout, void* const* parameters);

// A host module's table from an image in memory or a file's bytes; nullptr: not a host module or
// not loadable (then *error is set).
const deepum_host_module_table* open_host_module(const void* image, std::size_t bytes,
                                                 void** handle, CUresult* error);
// Is it an ELF shared object for this CPU? bytes 0: unknown, the image is complete in memory.
bool is_host_elf(const void* image) noexcept;
std::size_t elf_bytes(const void* image) noexcept;
ParameterLayout host_layout(const deepum_host_kernel& kernel);

void unload_modules(State& state, CUcontext context);

// The function a handle means, be it a CUfunction or a CUkernel; nullptr: unknown.
CUfunction resolve_function(State& state, CUfunction handle);

}  // namespace deepum::simgpu
