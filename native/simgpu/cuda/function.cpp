// What functions and kernels can be asked: names, parameters, attributes, occupancy.
#include <algorithm>
#include <cstdio>

#include "device.hpp"
#include "modules.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

CUresult attribute_of(State& state, CUfunction function, CUfunction_attribute attribute, int device,
                      int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: {
      // Of the code, not of the device: CUB picks its tuning by this, and has none but for the
      // architectures that it was compiled for.
      const int device_version = 10 * state.machine.presented_major + state.machine.presented_minor;
      Compiled compiled{device_version, device_version};
      if (Image* const image = function->module->image.get())
        compiled = image->compiled_for(function->name).value_or(compiled);
      *value = attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ? compiled.ptx : compiled.binary;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = std::max(
          function->max_dynamic_shared,
          device_attribute(state, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function->carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    function->max_dynamic_shared = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    function->carveout = value;
  } else if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
             attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Blocks on one multiprocessor by threads and dynamic shared memory; registers and static shared
// memory are not known.
int active_blocks(const State& state, int device, int threads, std::size_t shared) {
  const auto get = [&](CUdevice_attribute attribute) {
    return device_attribute(state, attribute, device);
  };
  if (threads <= 0 || threads > get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return 0;
  const int warps = (threads + 31) / 32;
  std::int64_t blocks =
      std::min(get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
               get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (32 * warps));
  if (shared > 0) {
    blocks = std::min<std::int64_t>(blocks,
                                    get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) /
                                        static_cast<std::int64_t>(shared));
  }
  return static_cast<int>(blocks);
}

CUresult parameter_info(Call& call, CUfunction handle, std::size_t index, std::size_t* offset,
                        std::size_t* size) {
  const CUfunction function = resolve_function(call.state(), handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!read_layout(call.state(), function) || !function->layout) return CUDA_ERROR_NOT_SUPPORTED;
  if (index >= function->layout->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->layout->parameters[index].offset;
  if (size != nullptr) *size = function->layout->parameters[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

namespace deepum::simgpu {

bool read_layout(State& state, CUfunction function) {
  if (function->layout_read) return function->layout.has_value();
  function->layout_read = true;
  function->layout = function->module->image->layout(function->name, &function->why);
  if (!function->layout) {
    if (state.unparsed_kernels.insert(function->name).second) {
      std::fprintf(
          stderr,
          "deepum-sim: kernel %s: parameters not known: %s; it is launched, but touches nothing\n",
          function->name.c_str(), function->why.c_str());
    }
  }
  return function->layout.has_value();
}

}  // namespace deepum::simgpu

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
  Call call(Need::initialised, Role::neutral);
  return call ? parameter_info(call, func, paramIndex, paramOffset, paramSize) : call.error();
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  Call call(Need::initialised, Role::neutral);
  return call ? parameter_info(call, as_function(kernel), paramIndex, paramOffset, paramSize)
              : call.error();
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction function = resolve_function(call.state(), hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return cuFuncGetName(name, as_function(hfunc));
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (hmod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction function = resolve_function(call.state(), hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *hmod = function->module;
  call.state().modules.insert(function->module);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction function = resolve_function(call.state(), as_function(kernel));
  if (function == nullptr || function->module->context != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *pLib = reinterpret_cast<CUlibrary>(function->module);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pFunc = resolve_function(call.state(), as_function(kernel));
  return *pFunc != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction function = resolve_function(call.state(), hfunc);
  return function != nullptr ? attribute_of(call.state(), function, attrib, call.device(), pi)
                             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUfunction function = resolve_function(call.state(), hfunc);
  return function != nullptr ? set_attribute(function, attrib, value) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUfunction function = resolve_function(call.state(), as_function(kernel));
  return function != nullptr ? attribute_of(call.state(), function, attrib, dev, pi)
                             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  const CUfunction function = resolve_function(call.state(), as_function(kernel));
  return function != nullptr ? set_attribute(function, attrib, val) : CUDA_ERROR_INVALID_HANDLE;
}

// Cache and bank preferences are hints without effect on the model.
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  return resolve_function(call.state(), hfunc) != nullptr ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
  return cuFuncSetCacheConfig(as_function(kernel), config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig) {
  return cuFuncSetCacheConfig(hfunc, CU_FUNC_CACHE_PREFER_NONE);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (resolve_function(call.state(), function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  return resolve_function(call.state(), function) != nullptr ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (numBlocks == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (resolve_function(call.state(), func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *numBlocks = active_blocks(call.state(), call.device(), blockSize, dynamicSMemSize);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                              dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int) {
  if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int best = 0, best_blocks = 0;
  const int most = blockSizeLimit > 0 ? std::min(blockSizeLimit, 1024) : 1024;
  for (int threads = most; threads >= 32; threads -= 32) {
    // The program's function is asked without the lock held.
    const std::size_t shared = blockSizeToDynamicSMemSize != nullptr
                                   ? blockSizeToDynamicSMemSize(threads)
                                   : dynamicSMemSize;
    int blocks = 0;
    if (const CUresult error =
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, func, threads, shared);
        error != CUDA_SUCCESS)
      return error;
    if (blocks * threads > best_blocks * best) {
      best = threads;
      best_blocks = blocks;
    }
  }
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  *blockSize = best;
  *minGridSize = best_blocks * call.state().machine.multiprocessors;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(
      minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (dynamicSmemSize == nullptr || numBlocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (resolve_function(call.state(), func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const int all = device_attribute(
      call.state(), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, call.device());
  const int most = device_attribute(
      call.state(), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, call.device());
  *dynamicSmemSize = static_cast<size_t>(std::min(all / numBlocks, most));
  return CUDA_SUCCESS;
}
