// Errors and versions.
#include "error_names.inc"  // generated from driver_types.h: kErrorNames, sorted by code
#include "runtime.hpp"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

using namespace deepum::simgpu::cudart;

namespace {

CUresult driver_entry(const char* symbol, void** function, int version, unsigned long long flags,
                      CUdriverProcAddressQueryResult* status) {
  if (flags == cudaEnableDefault && PerThreadDefault::active()) {
    flags = cudaEnablePerThreadDefaultStream;  // the numbers are the driver's CU_GET_PROC_ADDRESS_*
  }
  return driver().get_proc_address(symbol, function, version, flags, status);
}

}  // namespace

namespace deepum::simgpu::cudart {

cudaError_t not_simulated(const char* name) {
  static auto* const lock = new std::mutex;  // both outlive every destructor that may still call
  static auto* const names = new std::set<std::string>;
  const std::lock_guard guard(*lock);
  if (names->insert(name).second) {
    std::fprintf(stderr, "deepum-sim: %s is not simulated\n", name);
  }
  return fail(cudaErrorNotSupported);
}

}  // namespace deepum::simgpu::cudart

extern "C" {

cudaError_t CUDARTAPI cudaGetLastError(void) { return take_last_error(); }
cudaError_t CUDARTAPI cudaPeekAtLastError(void) { return last_error(); }

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  for (const ErrorName& entry : kErrorNames) {
    if (entry.code == static_cast<int>(error)) {
      return entry.name;
    }
  }
  return "unrecognized error code";
}

const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  if (error == cudaSuccess) {
    return "no error";
  }
  if (driver().cuGetErrorString != nullptr &&
      driver().cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS &&
      text != nullptr) {
    return text;
  }
  return cudaGetErrorName(error);
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  if (version == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  *version = 0;
  return driver().cuDriverGetVersion != nullptr ? done(driver().cuDriverGetVersion(version))
                                                : cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  return version == nullptr ? fail(cudaErrorInvalidValue)
                            : (*version = kMajor.version, cudaSuccess);
}

// They switch an attached profiler on and off; none can be attached to a simulated GPU.
cudaError_t CUDARTAPI cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaProfilerStop(void) { return cudaSuccess; }

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  if (driver().get_proc_address == nullptr) {
    return fail(cudaErrorInitializationError);
  }
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = nullptr;
  const CUresult result = driver_entry(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) {
    *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : done(result);  // the status says it
  }
  return done(result);
}
cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char* symbol, void** function,
                                              unsigned long long flags,
                                              enum cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, kMajor.version, flags, status);
}
cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function,
                                                   unsigned long long flags,
                                                   enum cudaDriverEntryPointQueryResult* status) {
  const PerThreadDefault scope;
  return cudaGetDriverEntryPointByVersion(symbol, function, kMajor.version, flags, status);
}

}  // extern "C"
