// Launching kernels.
#include <cstring>

#include "operation.hpp"

using namespace deepum::simgpu;

namespace {

constexpr std::uint64_t kMostThreads = 1024;

struct Shape {
  unsigned grid[3], block[3], shared;
};

// kernelParams: one pointer a parameter; extra: a buffer that is packed already (CU_LAUNCH_PARAM_*).
CUresult gather(const CUfunc_st& function, void** parameters, void** extra, std::vector<std::uint8_t>& packed) {
  const std::size_t wanted = function.layout ? function.layout->bytes : 0;
  if (extra != nullptr && parameters != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra == nullptr) {
    if (wanted == 0 || !function.layout) return CUDA_SUCCESS;
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    packed = pack(*function.layout, parameters);
    return CUDA_SUCCESS;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = *static_cast<std::size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (buffer == nullptr || size < wanted) return CUDA_ERROR_INVALID_VALUE;
  packed.assign(static_cast<const std::uint8_t*>(buffer), static_cast<const std::uint8_t*>(buffer) + size);
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction f, const Shape& shape, CUstream handle, void** parameters, void** extra) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  const CUfunction function = resolve_function(state, f);
  const CUstream stream = resolve_stream(call, handle);
  if (function == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  KernelWork work;
  work.function = function;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    work.grid[i] = shape.grid[i];
    work.block[i] = shape.block[i];
  }
  if (std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2] > kMostThreads) return CUDA_ERROR_INVALID_VALUE;
  work.shared_bytes = shape.shared;
  read_layout(state, function);
  if (const CUresult error = gather(*function, parameters, extra, work.parameters); error != CUDA_SUCCESS) return error;
  return submit(call, stream, std::move(work));
}

}  // namespace

namespace deepum::simgpu {

std::vector<std::uint8_t> pack(const ParameterLayout& layout, void* const* parameters) {
  std::vector<std::uint8_t> packed(layout.bytes);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const Parameter& parameter = layout.parameters[i];
    if (parameters[i] != nullptr && std::size_t{parameter.offset} + parameter.size <= packed.size()) {
      std::memcpy(packed.data() + parameter.offset, parameters[i], parameter.size);
    }
  }
  return packed;
}

}  // namespace deepum::simgpu

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
                        unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams,
                        void** extra) {
  return launch(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes}, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes};
  return launch(f, shape, config->hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                                   CUstream hStream, void** kernelParams) {
  return launch(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes}, hStream, kernelParams, nullptr);
}
