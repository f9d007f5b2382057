// Errors and versions.
#include "error_names.inc"  // generated from driver_types.h: kErrorNames, sorted by code
#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

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
  if (driver().cuGetErrorString != nullptr && driver().cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS &&
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
  return driver().cuDriverGetVersion != nullptr ? done(driver().cuDriverGetVersion(version)) : cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  return version == nullptr ? fail(cudaErrorInvalidValue) : (*version = CUDART_VERSION, cudaSuccess);
}

// They switch an attached profiler on and off; none can be attached to a simulated GPU.
cudaError_t CUDARTAPI cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaProfilerStop(void) { return cudaSuccess; }

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version, unsigned long long flags,
                                                       enum cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  if (driver().get_proc_address == nullptr) {
    return fail(cudaErrorInitializationError);
  }
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = nullptr;
  const CUresult result = driver().get_proc_address(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) {
    *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : done(result);  // the status says it
  }
  return done(result);
}

}  // extern "C"
