#include "runtime.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <type_traits>
#include <vector>

namespace deepum::simgpu::cudart {
namespace {

thread_local cudaError_t thread_error = cudaSuccess;
thread_local int thread_device = 0;

// The functions of driver.def are called in the forms of this release, whichever release's headers
// they are compiled with.
constexpr int kDriverVersion = 13000;

Driver load(cuuint64_t flags) {
  Driver d;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(
        stderr,
        "deepum-sim: error: libcuda.so.1 cannot be loaded: %s; start the program with deepum run\n",
        dlerror());
    return d;
  }
  d.get_proc_address =
      reinterpret_cast<decltype(d.get_proc_address)>(dlsym(library, "cuGetProcAddress_v2"));
  if (d.get_proc_address == nullptr) {
    std::fprintf(stderr,
                 "deepum-sim: error: libcuda.so.1 has no cuGetProcAddress_v2; use a driver of CUDA "
                 "12 or newer\n");
    return d;
  }
  const auto resolve = [&](const char* name, auto& function) {
    void* found = nullptr;
    if (d.get_proc_address(name, &found, kDriverVersion, flags, nullptr) == CUDA_SUCCESS) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    }
  };
#define DRIVER(name) resolve(#name, d.name);
#include "driver.def"
#include "driver_forwards.inc"
#undef DRIVER
  // Since 13.0 the same names also stand for functions that take a context, which cuda.h does not
  // rename: by version, those without.
  d.get_proc_address("cuCtxSynchronize", reinterpret_cast<void**>(&d.cuCtxSynchronize), 12000,
                     flags, nullptr);
  d.get_proc_address("cuCtxGetDevice", reinterpret_cast<void**>(&d.cuCtxGetDevice), 12000, flags,
                     nullptr);
  d.status = d.cuInit != nullptr ? d.cuInit(0) : CUDA_ERROR_NOT_INITIALIZED;
  return d;
}

CUresult primary_context(int device, CUcontext* context) {
  static std::mutex lock;
  static std::vector<CUcontext> contexts;  // each retained once, for the life of the process
  const std::lock_guard guard(lock);
  if (static_cast<std::size_t>(device) >= contexts.size()) {
    contexts.resize(device + 1);
  }
  if (contexts[device] == nullptr) {
    const CUresult result = driver().cuDevicePrimaryCtxRetain(&contexts[device], device);
    if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  *context = contexts[device];
  return CUDA_SUCCESS;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  return loaded;
}

constinit thread_local bool PerThreadDefault::active_ = false;

const Driver& stream_driver() {
  if (!PerThreadDefault::active()) {
    return driver();
  }
  static const Driver loaded = load(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return loaded;
}

cudaError_t fail(cudaError_t error) {
  thread_error = error;
  return error;
}

cudaError_t take_last_error() {
  const cudaError_t error = thread_error;
  thread_error = cudaSuccess;
  return error;
}

cudaError_t last_error() { return thread_error; }

int current_device() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  // A context that the program made current itself decides.
  if (driver().status == CUDA_SUCCESS && driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
      context != nullptr && driver().cuCtxGetDevice(&device) == CUDA_SUCCESS) {
    return device;
  }
  return thread_device;
}

CUresult bind() {
  const Driver& d = driver();
  if (d.status != CUDA_SUCCESS) {
    return d.status;
  }
  CUcontext context = nullptr;
  CUresult result = d.cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS || context != nullptr) {
    return result;
  }
  result = primary_context(thread_device, &context);
  return result == CUDA_SUCCESS ? d.cuCtxSetCurrent(context) : result;
}

cudaError_t set_device(int device) {
  const Driver& d = driver();
  if (d.status != CUDA_SUCCESS) {
    return fail(code(d.status));
  }
  int count = 0;
  if (d.cuDeviceGetCount(&count) != CUDA_SUCCESS || device < 0 || device >= count) {
    return fail(cudaErrorInvalidDevice);
  }
  CUcontext context = nullptr;
  const CUresult result = primary_context(device, &context);
  if (result != CUDA_SUCCESS) {
    return fail(code(result));
  }
  thread_device = device;
  return done(d.cuCtxSetCurrent(context));
}

}  // namespace deepum::simgpu::cudart
