// Loading code, as modules and as libraries, and finding kernels in it.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "graphs.hpp"
#include "modules.hpp"
#include "not_simulated.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

constexpr std::uint32_t kFatbinContainer = 0xBA55ED50;  // fatbinary_section.h and ../kernels

// Size of an image in memory, where its format tells; 0: leave it where it is (a wrapper around
// static data).
std::size_t image_bytes(const void* image) {
  std::uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (std::memcmp(image, "\177ELF", 4) == 0) return elf_bytes(image);
  if (magic == kFatbinContainer) {
    std::uint16_t header;
    std::uint64_t body;
    std::memcpy(&header, static_cast<const char*>(image) + 6, sizeof header);
    std::memcpy(&body, static_cast<const char*>(image) + 8, sizeof body);
    return header + body;
  }
  const auto first = static_cast<unsigned char>(*static_cast<const char*>(image));
  if (first == '/' || first == '.' || first == '\n' || first == ' ' || first == '\t')
    return std::strlen(static_cast<const char*>(image)) + 1;  // PTX
  return 0;
}

// Reads and checks an image. bytes 0: its format tells.
CUresult load(Call& call, const void* image, std::size_t bytes, std::unique_ptr<CUmod_st>& made) {
  made = std::make_unique<CUmod_st>();
  if (is_host_elf(image)) {
    CUresult error = CUDA_SUCCESS;
    made->host =
        open_host_module(image, bytes != 0 ? bytes : elf_bytes(image), &made->host_handle, &error);
    if (made->host == nullptr) return error;
    for (std::uint32_t i = 0; i < made->host->kernel_count; ++i) {
      call.state().host_module_loaded |= made->host->kernels[i].run != nullptr;
    }
    return CUDA_SUCCESS;
  }
  if (bytes == 0) bytes = image_bytes(image);
  const void* kept = image;
  if (bytes != 0) {
    const auto* const begin = static_cast<const std::uint8_t*>(image);
    made->storage.assign(begin, begin + bytes);
    made->storage.resize(bytes + 8);  // text is read to its NUL
    kept = made->storage.data();
  }
  std::string why;
  const auto& machine = call.state().machine;
  made->image = open_image(kept, machine.presented_major, machine.presented_minor, &why);
  if (made->image != nullptr) return CUDA_SUCCESS;
  std::fprintf(stderr, "deepum-sim: module image not readable: %s\n", why.c_str());
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult load_file(Call& call, const char* path, std::unique_ptr<CUmod_st>& made) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < 16) return CUDA_ERROR_INVALID_IMAGE;
  // Text must end; the size of anything else is the file's.
  std::vector<char> terminated = bytes;
  terminated.push_back('\0');
  const bool text = std::memcmp(bytes.data(), "\177ELF", 4) != 0;
  return load(call, terminated.data(), text ? 0 : bytes.size(), made);
}

const deepum_host_kernel* host_kernel(const CUmod_st& module, std::string_view name) {
  if (module.host == nullptr) return nullptr;
  for (std::uint32_t i = 0; i < module.host->kernel_count; ++i) {
    if (name == module.host->kernels[i].name) return &module.host->kernels[i];
  }
  return nullptr;
}

CUfunction find_function(State& state, CUmodule module, std::string_view name, CUresult& error) {
  const auto known = module->functions.find(name);
  if (known != module->functions.end()) return known->second.get();
  auto made = std::make_unique<CUfunc_st>();
  made->module = module;
  made->name = name;
  if (module->host != nullptr) {
    made->host = host_kernel(*module, name);
    if (made->host == nullptr) {
      error = CUDA_ERROR_NOT_FOUND;
      return nullptr;
    }
    made->layout = host_layout(*made->host);
    made->layout_read = true;
  }
  const CUfunction function = made.get();
  module->functions.emplace(std::string(name), std::move(made));
  state.functions.insert(function);
  return function;
}

// Compiled code is not searched for the name: that would decompress whole containers of which one
// kernel is wanted. It is looked up with the layout, at the kernel's first use; only small images
// are asked at once, so that a wrong name is an error here as well.
CUfunction find_checked(State& state, CUmodule module, std::string_view name, CUresult& error) {
  const bool small =
      module->image != nullptr && !module->storage.empty() && module->storage.size() < (8u << 20);
  if (small && !module->functions.contains(name)) {
    const auto names = module->image->kernels();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      error = CUDA_ERROR_NOT_FOUND;
      return nullptr;
    }
  }
  return find_function(state, module, name, error);
}

void enumerate(State& state, CUmodule module) {
  if (module->enumerated) return;
  module->enumerated = true;
  CUresult error = CUDA_SUCCESS;
  if (module->host != nullptr) {
    for (std::uint32_t i = 0; i < module->host->kernel_count; ++i)
      find_function(state, module, module->host->kernels[i].name, error);
  } else {
    for (const std::string& name : module->image->kernels())
      find_function(state, module, name, error);
  }
}

void unload(State& state, CUmodule module) {
  for (const auto& [name, function] : module->functions) state.functions.erase(function.get());
  state.modules.erase(module);
  state.libraries.erase(module);
  delete module;
}

CUmodule as_module(CUlibrary library) { return reinterpret_cast<CUmodule>(library); }

CUresult loaded(Call& call, CUresult error, std::unique_ptr<CUmod_st>& made, CUcontext context,
                CUmodule* out) {
  if (error != CUDA_SUCCESS) return error;
  made->context = context;
  *out = made.release();
  (context != nullptr ? call.state().modules : call.state().libraries).insert(*out);
  return CUDA_SUCCESS;
}

}  // namespace

namespace deepum::simgpu {

void unload_modules(State& state, CUcontext context) {
  std::vector<CUmodule> modules;
  for (const void* const pointer : state.modules) {
    const auto module = static_cast<CUmodule>(const_cast<void*>(pointer));
    if (module->context == context) modules.push_back(module);
  }
  for (const CUmodule module : modules) unload(state, module);
}

CUfunction resolve_function(State& state, CUfunction handle) {
  return alive(state.functions, handle) ? handle : nullptr;
}

}  // namespace deepum::simgpu

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUmod_st> made;
  const CUresult error = load_file(call, fname, made);
  return loaded(call, error, made, call.context(), module);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUmod_st> made;
  const CUresult error = load(call, image, 0, made);
  return loaded(call, error, made, call.context(), module);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return cuModuleLoadData(module, fatCubin);
}

CUresult cuModuleUnload(CUmodule hmod) {
  Call call(Need::initialised, Role::synchronise);
  if (!call) return call.error();
  if (!alive(call.state().modules, hmod) || hmod->context == nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  // A queued kernel needs its code.
  finish_all_devices(call);
  // Another thread unloaded it meanwhile.
  if (!alive(call.state().modules, hmod)) return CUDA_ERROR_INVALID_HANDLE;
  unload(call.state(), hmod);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (hfunc == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().modules, hmod)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult error = CUDA_SUCCESS;
  *hfunc = find_checked(call.state(), hmod, name, error);
  return error;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().modules, mod)) return CUDA_ERROR_INVALID_HANDLE;
  enumerate(call.state(), mod);
  *count = static_cast<unsigned>(mod->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().modules, mod)) return CUDA_ERROR_INVALID_HANDLE;
  enumerate(call.state(), mod);
  for (auto entry = mod->functions.begin(); entry != mod->functions.end() && numFunctions > 0;
       ++entry, --numFunctions)
    *functions++ = entry->second.get();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUmod_st> made;
  const CUresult error = load(call, code, 0, made);
  return loaded(call, error, made, nullptr, reinterpret_cast<CUmodule*>(library));
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (library == nullptr || fileName == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUmod_st> made;
  const CUresult error = load_file(call, fileName, made);
  return loaded(call, error, made, nullptr, reinterpret_cast<CUmodule*>(library));
}

CUresult cuLibraryUnload(CUlibrary library) {
  Call call(Need::initialised, Role::synchronise);
  if (!call) return call.error();
  if (!alive(call.state().libraries, library)) return CUDA_ERROR_INVALID_HANDLE;
  finish_all_devices(call);
  if (!alive(call.state().libraries, library)) return CUDA_ERROR_INVALID_HANDLE;
  unload(call.state(), as_module(library));
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().libraries, library)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult error = CUDA_SUCCESS;
  *pKernel =
      reinterpret_cast<CUkernel>(find_checked(call.state(), as_module(library), name, error));
  return error;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().libraries, lib)) return CUDA_ERROR_INVALID_HANDLE;
  enumerate(call.state(), as_module(lib));
  *count = static_cast<unsigned>(as_module(lib)->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().libraries, lib)) return CUDA_ERROR_INVALID_HANDLE;
  const CUmodule module = as_module(lib);
  enumerate(call.state(), module);
  for (auto entry = module->functions.begin(); entry != module->functions.end() && numKernels > 0;
       ++entry, --numKernels) {
    *kernels++ = reinterpret_cast<CUkernel>(entry->second.get());
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(call.state().libraries, library)) return CUDA_ERROR_INVALID_HANDLE;
  *pMod = as_module(library);
  call.state().modules.insert(*pMod);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t*, CUlibrary, const char*) {
  if (dptr != nullptr) *dptr = 0;
  return not_simulated("cuLibraryGetGlobal");
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t*, CUmodule, const char*) {
  if (dptr != nullptr) *dptr = 0;
  return not_simulated("cuModuleGetGlobal");
}
