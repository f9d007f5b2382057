// What the parts of the runtime stand-in share: the driver's functions, the calling thread's device
// and error, the argument casts.
//
// The driver is reached as the real libcudart reaches it: dlopen("libcuda.so.1"), one dlsym of
// cuGetProcAddress_v2, then queries by name, version and flags. Whoever interposes the driver is
// therefore on the way. A function that the driver lacks is null.
#pragma once

#include <cuda.h>
// Functions that have another form in CUDA 13 than under the same name in CUDA 12 are defined and
// called here by the name of that form in CUDA 12 (changed.names), so that both libraries can have
// these objects; each adds its own forms of those names (cuda12.cpp, cuda13.cpp).
#include "changed_define.inc"
// After it: what it declares has to bear those names too.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace deepum::simgpu::cudart {

// In what the libraries of CUDA 12 and 13 differ as values. Each has its own.
struct Major {
  int version;  // CUDART_VERSION
  // sizeof(cudaPointerAttributes); the fields that both have are at the same places.
  std::size_t pointer_attributes_bytes;
};
extern const Major kMajor;

struct Driver {
#define DRIVER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
#include "driver.def"
#include "driver_forwards.inc"
#undef DRIVER
  CUresult (*get_proc_address)(const char*, void**, int, cuuint64_t,
                               CUdriverProcAddressQueryResult*) = nullptr;
  CUresult status = CUDA_ERROR_NOT_INITIALIZED;  // of loading it and of cuInit
};

const Driver& driver();

// While one lives, the calling thread runs the _ptsz or _ptds form of a function: its default
// stream is the thread's own. As the real library, it then takes the driver functions that
// cuGetProcAddress_v2 answers under CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.
class PerThreadDefault {
 public:
  PerThreadDefault() : before_(active_) { active_ = true; }
  ~PerThreadDefault() { active_ = before_; }
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;
  static bool active() { return active_; }

 private:
  static constinit thread_local bool active_;
  bool before_;
};
// driver(), or in such a form its counterpart with per-thread default streams.
const Driver& stream_driver();

// Error codes of the runtime are those of the driver, number by number (driver_types.h against
// cuda.h).
inline cudaError_t code(CUresult result) { return static_cast<cudaError_t>(result); }

cudaError_t fail(cudaError_t error);  // remembers it for cudaGetLastError, answers it
// Says once for each name that it is not simulated; cudaErrorNotSupported.
cudaError_t not_simulated(const char* name);
inline cudaError_t done(CUresult result) {
  return result == CUDA_SUCCESS ? cudaSuccess : fail(code(result));
}
cudaError_t take_last_error();
cudaError_t last_error();

// The calling thread's device; bind() makes its primary context current unless the thread has a
// context.
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
  F f = stream_driver().*function;
  return f == nullptr ? fail(cudaErrorNotSupported) : done(f(arguments...));
}

template <typename T>
concept CompleteClass = std::is_class_v<T> && requires { sizeof(T); };

// One value as the driver's type for it: handles, pointers, enums and structs of the runtime have
// the driver's layout, field by field (driver_types.h against cuda.h).
template <typename To, typename From>
To convert(From value) {
  using ToTarget = std::remove_cv_t<std::remove_pointer_t<To>>;
  using FromTarget = std::remove_cv_t<std::remove_pointer_t<From>>;
  if constexpr (CompleteClass<ToTarget> && CompleteClass<FromTarget>) {
    static_assert(sizeof(ToTarget) == sizeof(FromTarget) &&
                  alignof(ToTarget) == alignof(FromTarget));
  }
  if constexpr (std::is_class_v<To>) {
    static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<From>);
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
  } else {
    return (To)(value);  // static_ or reinterpret_cast, as the types ask
  }
}

template <typename... Parameters, typename... Arguments>
cudaError_t forward(CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
  return call(function, convert<Parameters>(arguments)...);
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// The kernel behind a registered host function, or a cudaKernel_t itself. Loads the image at first
// use.
CUresult find_kernel(const void* function, CUkernel* kernel);
// use(that kernel), or the error.
template <typename Use>
cudaError_t with_kernel(const void* function, Use use) {
  CUkernel kernel = nullptr;
  const CUresult result = find_kernel(function, &kernel);
  if (result != CUDA_SUCCESS) {
    return fail(result == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction
                                                    : code(result));
  }
  return use(kernel);
}
// The registered host function that find_kernel() answered the kernel for, or the kernel itself.
void* function_of(CUkernel kernel);
// As copies between pitched regions of memory. False: an array takes part, which the simulated GPU
// does not have.
bool as_driver_copy(const cudaMemcpy3DParms& copy, CUDA_MEMCPY3D* out);
cudaMemcpy3DParms as_runtime_copy(const CUDA_MEMCPY3D& copy);

}  // namespace deepum::simgpu::cudart
