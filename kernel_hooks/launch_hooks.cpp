// Kernel and graph launches: the event first, then the call itself. Nothing here allocates,
// synchronises or asks the driver, but for the first sight of a function.
#include "captures.hpp"
#include "discard_order.hpp"
#include "execution.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "launches.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "streams.hpp"

namespace deepum::hooks {
namespace {

template <typename F, typename... A>
inline CUresult launch(const StreamRef& stream, CUfunction handle, const unsigned (&grid)[3],
                       const unsigned (&block)[3], unsigned shared_bytes, void** parameters,
                       void** extra, const Function<F>& function, A... arguments) noexcept {
  if (!handle || stream.device < 0) [[unlikely]] {
    return forward(function, arguments...);
  }
  if (capturing(stream)) [[unlikely]] {
    const CUresult result = forward(function, arguments...);
    if (result == CUDA_SUCCESS) {
      launch_captured(stream, kernel_function(handle), grid[0], parameters, extra);
    }
    return result;
  }
  std::uint64_t sequence;
  {
    const KernelFunction& kernel = launched_function(handle);
    Execution execution(launch_identity(kernel, grid, block, shared_bytes),
                        kernel.sparse ? DEEPUM_EXECUTE_SPARSE : 0);
    add_arguments(execution, kernel, grid[0], parameters, extra);
    sequence = execution.emit(stream);
  }
  runtime::before_execute(stream.device, stream.handle, stream.id, sequence);
  const CUresult result = forward(function, arguments...);
  if (result == CUDA_SUCCESS) [[likely]] {
    runtime::after_execute(stream.device, stream.handle, stream.id);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                           void** parameters, void** extra) {
  return launch(stream_of(stream, kPerThread), f, {gx, gy, gz}, {bx, by, bz}, shared_bytes,
                parameters, extra, real<kPerThread>().cuLaunchKernel, f, gx, gy, gz, bx, by, bz,
                shared_bytes, stream, parameters, extra);
}

template <bool kPerThread>
CUresult on_cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters,
                             void** extra) {
  const auto& function = real<kPerThread>().cuLaunchKernelEx;
  if (!config) {
    return forward(function, config, f, parameters, extra);
  }
  return launch(stream_of(config->hStream, kPerThread), f,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes,
                parameters, extra, function, config, f, parameters, extra);
}

template <bool kPerThread>
CUresult on_cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                                      CUstream stream, void** parameters) {
  return launch(stream_of(stream, kPerThread), f, {gx, gy, gz}, {bx, by, bz}, shared_bytes,
                parameters, nullptr, real<kPerThread>().cuLaunchCooperativeKernel, f, gx, gy, gz,
                bx, by, bz, shared_bytes, stream, parameters);
}

template <bool kPerThread>
CUresult on_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const StreamRef at = stream_of(stream, kPerThread);
  const auto& function = real<kPerThread>().cuGraphLaunch;
  if (!exec || at.device < 0 || capturing(at)) {
    return forward(function, exec, stream);
  }
  std::uint64_t sequence;
  {
    Execution execution(0, DEEPUM_EXECUTE_GRAPH);
    describe_graph(exec, execution);
    sequence = execution.emit(at);
  }
  runtime::before_execute(at.device, at.handle, at.id, sequence);
  runtime::before_graph(at.handle);
  const CUresult result = forward(function, exec, stream);
  if (result == CUDA_SUCCESS) {
    runtime::after_execute(at.device, at.handle, at.id);
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_LAUNCH
#include "exports.inc"
