// Launching kernels.
#include <cstring>

#include "operation.hpp"

using namespace deepum::simgpu;

namespace {

constexpr std::uint64_t kMostThreads = 1024;

CUresult gather(const CUfunc_st& function, void* const* parameters, void* const* extra,
                std::vector<std::uint8_t>& packed) {
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
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (size < wanted || (buffer == nullptr && wanted > 0)) return CUDA_ERROR_INVALID_VALUE;
  if (buffer != nullptr) {
    packed.assign(static_cast<const std::uint8_t*>(buffer),
                  static_cast<const std::uint8_t*>(buffer) + size);
  }
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction function, const std::uint32_t (&grid)[3],
                const std::uint32_t (&block)[3], unsigned shared, CUstream handle,
                void** parameters, void** extra) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  KernelWork work;
  if (const CUresult error =
          make_launch(call.state(), function, grid, block, shared, parameters, extra, work);
      error != CUDA_SUCCESS)
    return error;
  return submit(call, stream, std::move(work));
}

}  // namespace

namespace deepum::simgpu {

std::vector<std::uint8_t> pack(const ParameterLayout& layout, void* const* parameters) {
  std::vector<std::uint8_t> packed(layout.bytes);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const Parameter& parameter = layout.parameters[i];
    if (parameters[i] != nullptr &&
        std::size_t{parameter.offset} + parameter.size <= packed.size()) {
      std::memcpy(packed.data() + parameter.offset, parameters[i], parameter.size);
    }
  }
  return packed;
}

CUresult make_launch(State& state, CUfunction handle, const std::uint32_t (&grid)[3],
                     const std::uint32_t (&block)[3], std::uint32_t shared_bytes,
                     void* const* parameters, void* const* extra, KernelWork& work) {
  const CUfunction function = resolve_function(state, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  work.function = function;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    work.grid[i] = grid[i];
    work.block[i] = block[i];
  }
  if (std::uint64_t{block[0]} * block[1] * block[2] > kMostThreads) return CUDA_ERROR_INVALID_VALUE;
  work.shared_bytes = shared_bytes;
  read_layout(state, function);
  return gather(*function, parameters, extra, work.parameters);
}

}  // namespace deepum::simgpu

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return launch(f, {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ},
                sharedMemBytes, hStream, kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch(f, {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes,
                config->hStream, kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  return launch(f, {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ},
                sharedMemBytes, hStream, kernelParams, nullptr);
}
