// Launches as before CUDA 4: a function keeps its block's shape, its shared memory and its
// parameters until the next launch. PyCUDA still sets the shape so.
#include <cstring>

#include "operation.hpp"

using namespace deepum::simgpu;

namespace {

constexpr std::size_t kMostParameterBytes = 4096;

// set(the function's old-style launch), under the driver's lock.
template <typename Set>
CUresult change(CUfunction handle, Set set) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUfunction function = resolve_function(call.state(), handle);
  return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : set(function->old_launch);
}

CUresult set_parameter(CUfunction handle, int offset, const void* value, std::size_t bytes) {
  return change(handle, [&](OldLaunch& launch) {
    if (offset < 0 || value == nullptr || bytes > kMostParameterBytes ||
        std::size_t(offset) > kMostParameterBytes - bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (launch.parameters.size() < std::size_t(offset) + bytes)
      launch.parameters.resize(std::size_t(offset) + bytes);
    std::memcpy(launch.parameters.data() + offset, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream) {
  OldLaunch kept;
  const CUresult found = change(handle, [&](const OldLaunch& launch) {
    kept = launch;
    return width > 0 && height > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
  if (found != CUDA_SUCCESS) return found;
  std::size_t bytes = kept.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kept.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(handle, unsigned(width), unsigned(height), 1, kept.block[0], kept.block[1],
                        kept.block[2], kept.shared_bytes, stream, nullptr,
                        bytes == 0 ? nullptr : extra);
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
  return change(hfunc, [&](OldLaunch& launch) {
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    launch.block[0] = unsigned(x), launch.block[1] = unsigned(y), launch.block[2] = unsigned(z);
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
  return change(hfunc, [&](OldLaunch& launch) {
    launch.shared_bytes = bytes;
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
  return change(hfunc, [&](OldLaunch& launch) {
    if (numbytes > kMostParameterBytes) return CUDA_ERROR_INVALID_VALUE;
    launch.parameters.resize(numbytes);
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value) {
  return set_parameter(hfunc, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction hfunc, int offset, float value) {
  return set_parameter(hfunc, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction hfunc, int offset, void* ptr, unsigned int numbytes) {
  return set_parameter(hfunc, offset, ptr, numbytes);
}
CUresult cuLaunch(CUfunction f) { return launch_grid(f, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
  return launch_grid(f, grid_width, grid_height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return launch_grid(f, grid_width, grid_height, hStream);
}
