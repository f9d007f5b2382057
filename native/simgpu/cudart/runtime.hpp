// What the parts of the runtime stand-in share: the driver's functions, the calling thread's device and error, the argument casts.
//
// The driver is reached as the real libcudart reaches it: dlopen("libcuda.so.1"), one dlsym of cuGetProcAddress_v2, then queries
// by name, version and flags. Whoever interposes the driver is therefore on the way. A function that the driver lacks is null.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace deepum::simgpu::cudart {

struct Driver {
#define DRIVER(name) decltype(&::name) name = nullptr;
#include "driver.def"
#undef DRIVER
  CUresult (*get_proc_address)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) = nullptr;
  CUresult status = CUDA_ERROR_NOT_INITIALIZED;  // of loading it and of cuInit
};

const Driver& driver();

// Error codes of the runtime are those of the driver, number by number (driver_types.h against cuda.h).
inline cudaError_t code(CUresult result) { return static_cast<cudaError_t>(result); }

cudaError_t fail(cudaError_t error);  // remembers it for cudaGetLastError, answers it
inline cudaError_t done(CUresult result) { return result == CUDA_SUCCESS ? cudaSuccess : fail(code(result)); }
cudaError_t take_last_error();
cudaError_t last_error();

// The calling thread's device; bind() makes its primary context current unless the thread has a context.
int current_device();
cudaError_t set_device(int device);
CUresult bind();

// The driver's function, the thread bound; CUDA_ERROR_NOT_SUPPORTED where the driver lacks it.
template <typename F, typename... Arguments>
cudaError_t call(F Driver::* function, Arguments... arguments) {
  const CUresult bound = bind();
  if (bound != CUDA_SUCCESS) {
    return fail(code(bound));
  }
  F f = driver().*function;
  return f == nullptr ? fail(cudaErrorNotSupported) : done(f(arguments...));
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// The kernel behind a registered host function, or a cudaKernel_t itself. Loads the image at first use.
CUresult find_kernel(const void* function, CUkernel* kernel);

}  // namespace deepum::simgpu::cudart
