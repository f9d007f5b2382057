// Device code that compilers register at load: images, functions, variables. Registering is
// bookkeeping only (PyTorch registers 21,000 functions); an image is loaded at the first launch of
// one of its functions.
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

// A `__managed__` variable: the compiler reaches it by a pointer, once it has asked for the module
// to be initialised.
struct Managed {
  void** pointer = nullptr;
  std::size_t bytes = 0;
};

struct Image {
  const void* wrapper = nullptr;  // fatbin wrapper, fatbinary_section.h
  std::vector<Managed> managed;
  std::once_flag once;
  CUlibrary library = nullptr;
  CUresult status = CUDA_ERROR_NOT_INITIALIZED;

  CUresult load() {
    std::call_once(once, [this] {
      const auto load_data = driver().cuLibraryLoadData;
      status = load_data == nullptr
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : load_data(&library, wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
    return status;
  }
};

struct Function {
  Image* image = nullptr;
  const char* name = nullptr;
  std::atomic<CUkernel> kernel{nullptr};
};

struct Variable {
  std::size_t bytes = 0;
  CUdeviceptr address = 0;
};

struct Registry {
  std::shared_mutex lock;
  std::deque<Image> images;
  std::deque<Function> functions;
  std::unordered_map<const void*, Function*> by_host_function;
  std::unordered_map<CUkernel, const void*> host_functions;  // of the kernels that were looked up
  std::unordered_map<const void*, Variable> variables;
};

// Never destroyed: programs launch and unregister during exit.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

CUresult find_variable(const void* symbol, Variable* found) {
  Registry& r = registry();
  const std::unique_lock guard(r.lock);
  const auto entry = r.variables.find(symbol);
  if (entry == r.variables.end()) {
    return CUDA_ERROR_NOT_FOUND;
  }
  Variable& variable = entry->second;
  if (variable.address == 0) {
    const CUresult bound = bind();
    if (bound != CUDA_SUCCESS) {
      return bound;
    }
    // The simulated driver keeps no data segments of compiled images: a variable is memory of its
    // own, zero at first.
    const CUresult result = driver().cuMemAlloc(&variable.address, variable.bytes);
    if (result != CUDA_SUCCESS) {
      variable.address = 0;
      return result;
    }
  }
  *found = variable;
  return CUDA_SUCCESS;
}

// Zero at first, as other variables. They are known by their addresses, which is what the compiler
// makes of their names.
CUresult allocate_managed(Image& image) {
  Registry& r = registry();
  const std::unique_lock guard(r.lock);
  for (const Managed& variable : image.managed) {
    if (*variable.pointer != nullptr) continue;
    CUdeviceptr address = 0;
    const CUresult result =
        driver().cuMemAllocManaged(&address, variable.bytes, CU_MEM_ATTACH_GLOBAL);
    if (result != CUDA_SUCCESS) return result;
    *variable.pointer = pointer(address);
    r.variables[pointer(address)] = {variable.bytes, address};
  }
  return CUDA_SUCCESS;
}

}  // namespace

namespace deepum::simgpu::cudart {

CUresult find_kernel(const void* function, CUkernel* kernel) {
  Registry& r = registry();
  Function* entry = nullptr;
  {
    const std::shared_lock guard(r.lock);
    const auto found = r.by_host_function.find(function);
    entry = found == r.by_host_function.end() ? nullptr : found->second;
  }
  if (entry == nullptr) {
    *kernel = reinterpret_cast<CUkernel>(const_cast<void*>(function));  // a cudaKernel_t already
    return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
  *kernel = entry->kernel.load(std::memory_order_acquire);
  if (*kernel != nullptr) {
    return CUDA_SUCCESS;
  }
  CUresult result = bind();
  if (result == CUDA_SUCCESS) {
    result = entry->image->load();
  }
  if (result == CUDA_SUCCESS) {
    result = driver().cuLibraryGetKernel(kernel, entry->image->library, entry->name);
  }
  if (result == CUDA_SUCCESS) {
    entry->kernel.store(*kernel, std::memory_order_release);
    const std::unique_lock guard(r.lock);
    r.host_functions[*kernel] = function;
  }
  return result;
}

void* function_of(CUkernel kernel) {
  Registry& r = registry();
  const std::shared_lock guard(r.lock);
  const auto found = r.host_functions.find(kernel);
  return found == r.host_functions.end() ? static_cast<void*>(kernel)
                                         : const_cast<void*>(found->second);
}

}  // namespace deepum::simgpu::cudart

extern "C" {

void** CUDARTAPI __cudaRegisterFatBinary(void* wrapper) {
  Registry& r = registry();
  const std::unique_lock guard(r.lock);
  Image& image = r.images.emplace_back();
  image.wrapper = wrapper;
  return reinterpret_cast<void**>(&image);
}
void CUDARTAPI __cudaRegisterFatBinaryEnd(void**) {}
void CUDARTAPI __cudaUnregisterFatBinary(void**) {}  // at exit only; the driver is going too
char CUDARTAPI __cudaInitModule(void** handle) {
  auto* const image = reinterpret_cast<Image*>(handle);
  return bind() == CUDA_SUCCESS && image->load() == CUDA_SUCCESS &&
                 allocate_managed(*image) == CUDA_SUCCESS
             ? 1
             : 0;
}

void CUDARTAPI __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                      const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& r = registry();
  const std::unique_lock guard(r.lock);
  Function& function = r.functions.emplace_back();
  function.image = reinterpret_cast<Image*>(handle);
  function.name = name;
  r.by_host_function[host_function] = &function;
}

void CUDARTAPI __cudaRegisterVar(void**, char* host_variable, char*, const char*, int, size_t bytes,
                                 int, int) {
  Registry& r = registry();
  const std::unique_lock guard(r.lock);
  r.variables[host_variable] = {bytes, 0};
}

void CUDARTAPI __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char*, int,
                                        size_t bytes, int, int) {
  const std::unique_lock guard(registry().lock);
  reinterpret_cast<Image*>(handle)->managed.push_back({host_pointer, bytes});
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** memory, const void* symbol) {
  Variable variable;
  const CUresult result = find_variable(symbol, &variable);
  if (result != CUDA_SUCCESS) {
    return fail(result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : code(result));
  }
  *memory = pointer(variable.address);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  Variable variable;
  const CUresult result = find_variable(symbol, &variable);
  if (result != CUDA_SUCCESS) {
    return fail(result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : code(result));
  }
  *bytes = variable.bytes;
  return cudaSuccess;
}

}  // extern "C"
