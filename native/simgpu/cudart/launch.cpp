// Launches, function attributes, occupancy, libraries.
#include <vector>

#include "runtime.hpp"

using namespace deepum::simgpu::cudart;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;  // of <<<...>>> expressions under way

// The driver takes a kernel wherever it takes a function.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                   cudaStream_t stream) {
  return call(&Driver::cuLaunchKernel, as_function(kernel), grid.x, grid.y, grid.z, block.x,
              block.y, block.z, static_cast<unsigned>(shared_bytes), stream, arguments,
              static_cast<void**>(nullptr));
}

// cuFuncGetAttribute wants a function of the current context.
CUresult loaded_function(CUkernel kernel, CUfunction* function) {
  const CUresult bound = bind();
  if (bound != CUDA_SUCCESS) {
    return bound;
  }
  return driver().cuKernelGetFunction == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                                 : driver().cuKernelGetFunction(function, kernel);
}

}  // namespace

extern "C" {

unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                               cudaStream_t stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                                 void* stream) {
  if (configurations.empty()) {
    return fail(cudaErrorMissingConfiguration);
  }
  const Configuration& top = configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  configurations.pop_back();
  return cudaSuccess;
}

cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return with_kernel(function, [&](CUkernel found) {
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return __cudaGetKernel(kernel, function);
}
cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return with_kernel(symbol, [&](CUkernel kernel) {
    return done(loaded_function(kernel, reinterpret_cast<CUfunction*>(function)));
  });
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                         void** arguments, size_t shared_bytes,
                                         cudaStream_t stream) {
  return launch(reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared_bytes, stream);
}
cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                              void** arguments, size_t shared_bytes,
                                              cudaStream_t stream) {
  const PerThreadDefault scope;
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                                       void** arguments, size_t shared_bytes, cudaStream_t stream) {
  return with_kernel(function, [&](CUkernel kernel) {
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
  });
}
cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                  void** arguments, size_t shared_bytes,
                                                  cudaStream_t stream) {
  return with_kernel(function, [&](CUkernel kernel) {
    return call(&Driver::cuLaunchCooperativeKernel, as_function(kernel), grid.x, grid.y, grid.z,
                block.x, block.y, block.z, static_cast<unsigned>(shared_bytes), stream, arguments);
  });
}
cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                          void** arguments) {
  if (config == nullptr) {
    return fail(cudaErrorInvalidValue);
  }
  return with_kernel(function, [&](CUkernel kernel) {
    CUlaunchConfig c{};
    c.gridDimX = config->gridDim.x, c.gridDimY = config->gridDim.y, c.gridDimZ = config->gridDim.z;
    c.blockDimX = config->blockDim.x, c.blockDimY = config->blockDim.y,
    c.blockDimZ = config->blockDim.z;
    c.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    c.hStream = config->stream;
    // One layout, driver_types.h against cuda.h.
    c.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
    c.numAttrs = config->numAttrs;
    return call(&Driver::cuLaunchKernelEx, const_cast<const CUlaunchConfig*>(&c),
                as_function(kernel), arguments, static_cast<void**>(nullptr));
  });
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes* attributes,
                                            const void* function) {
  return with_kernel(function, [&](CUkernel kernel) {
    CUfunction loaded = nullptr;
    const CUresult result = loaded_function(kernel, &loaded);
    if (result != CUDA_SUCCESS) {
      return fail(code(result));
    }
    const auto get = [&](CUfunction_attribute which) {
      int value = 0;
      return driver().cuFuncGetAttribute(&value, which, loaded) == CUDA_SUCCESS ? value : 0;
    };
    *attributes = {};
    attributes->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->constSizeBytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attributes->localSizeBytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute,
                                           int value) {
  return with_kernel(function, [&](CUkernel kernel) {
    CUfunction loaded = nullptr;
    const CUresult result = loaded_function(kernel, &loaded);
    // The numbers are the driver's.
    return done(result == CUDA_SUCCESS
                    ? driver().cuFuncSetAttribute(
                          loaded, static_cast<CUfunction_attribute>(attribute), value)
                    : result);
  });
}
cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void* function, enum cudaFuncCache config) {
  return with_kernel(function, [&](CUkernel kernel) {
    CUfunction loaded = nullptr;
    const CUresult result = loaded_function(kernel, &loaded);
    return done(result == CUDA_SUCCESS
                    ? driver().cuFuncSetCacheConfig(loaded, static_cast<CUfunc_cache>(config))
                    : result);
  });
}
cudaError_t CUDARTAPI cudaFuncGetName(const char** name, const void* function) {
  return with_kernel(function,
                     [&](CUkernel kernel) { return call(&Driver::cuKernelGetName, name, kernel); });
}
cudaError_t CUDARTAPI cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset,
                                           size_t* bytes) {
  return with_kernel(function, [&](CUkernel kernel) {
    return call(&Driver::cuKernelGetParamInfo, kernel, index, offset, bytes);
  });
}
cudaError_t CUDARTAPI cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
                                                      enum cudaFuncAttribute attribute, int value,
                                                      int device) {
  return call(&Driver::cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value,
              reinterpret_cast<CUkernel>(kernel), CUdevice(device));
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, size_t shared_bytes, unsigned int flags) {
  return with_kernel(function, [&](CUkernel kernel) {
    CUfunction loaded = nullptr;
    const CUresult result = loaded_function(kernel, &loaded);
    return done(result == CUDA_SUCCESS
                    ? driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                          blocks, loaded, threads, shared_bytes, flags)
                    : result);
  });
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                    const void* function,
                                                                    int threads,
                                                                    size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                shared_bytes, 0);
}
cudaError_t CUDARTAPI cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                                int blocks, int threads) {
  return with_kernel(function, [&](CUkernel kernel) {
    CUfunction loaded = nullptr;
    const CUresult result = loaded_function(kernel, &loaded);
    return result == CUDA_SUCCESS ? call(&Driver::cuOccupancyAvailableDynamicSMemPerBlock, bytes,
                                         loaded, blocks, threads)
                                  : fail(code(result));
  });
}

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t* library, const void* image,
                                          enum cudaJitOption* jit_options, void** jit_values,
                                          unsigned int jit_count, enum cudaLibraryOption* options,
                                          void** values, unsigned int count) {
  return call(&Driver::cuLibraryLoadData, reinterpret_cast<CUlibrary*>(library), image,
              reinterpret_cast<CUjit_option*>(jit_options), jit_values, jit_count,
              reinterpret_cast<CUlibraryOption*>(options), values, count);
}
cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library) {
  return call(&Driver::cuLibraryUnload, reinterpret_cast<CUlibrary>(library));
}
cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library,
                                           const char* name) {
  return call(&Driver::cuLibraryGetKernel, reinterpret_cast<CUkernel*>(kernel),
              reinterpret_cast<CUlibrary>(library), name);
}

}  // extern "C"
