// Linear copies, synchronous and asynchronous.
#include "copy_call.hpp"
#include "graphs.hpp"
#include "not_simulated.hpp"

namespace deepum::simgpu {
namespace {

// Smaller pageable sources are copied at once, and the call returns.
constexpr std::uint64_t kStagedBytes = 64 << 10;

struct Place {
  bool valid;     // may be touched as far as the driver knows
  bool gpu;       // device or managed memory
  bool pageable;  // host memory that CUDA does not know
};

Place place_of(State& state, std::uint64_t address, std::uint64_t span, Side side) {
  const Allocation* const allocation = state.memory.find(address);
  if (allocation == nullptr)
    return {side != Side::device && address != 0 && !state.memory.owns(address), false, true};
  return {span <= allocation->end() - address, allocation->on_gpu(), false};
}

}  // namespace

CUresult copy_call(CUstream handle, CopyWork work, Side destination, Side source,
                   bool asynchronous) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  State& state = call.state();
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (work.bytes() == 0) return CUDA_SUCCESS;
  if (!asynchronous) {
    if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  }
  const Place to = place_of(state, work.destination, work.destination_span(), destination);
  const Place from = place_of(state, work.source, work.source_span(), source);
  if (!to.valid || !from.valid) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return submit(call, stream, std::move(work));
  bool wait = !asynchronous ? !(to.gpu && from.gpu) : to.pageable || from.pageable;
  if (asynchronous && from.pageable && !to.pageable && work.height * work.depth == 1 &&
      work.width <= kStagedBytes) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(work.source);
    work.staged.assign(bytes, bytes + work.width);
    wait = false;
  }
  if (const CUresult error = submit(call, stream, std::move(work)); error != CUDA_SUCCESS)
    return error;
  return wait ? finish_stream(call, stream) : CUDA_SUCCESS;
}

}  // namespace deepum::simgpu

using namespace deepum::simgpu;

namespace {
std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
}  // namespace

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copy_call(nullptr, linear(dst, src, ByteCount), Side::any, Side::any, false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copy_call(hStream, linear(dst, src, ByteCount), Side::any, Side::any, true);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return copy_call(nullptr, linear(dstDevice, address(srcHost), ByteCount), Side::device,
                   Side::host, false);
}

CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy_call(nullptr, linear(address(dstHost), srcDevice, ByteCount), Side::host,
                   Side::device, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy_call(nullptr, linear(dstDevice, srcDevice, ByteCount), Side::device, Side::device,
                   false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return copy_call(hStream, linear(dstDevice, address(srcHost), ByteCount), Side::device,
                   Side::host, true);
}

CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copy_call(hStream, linear(address(dstHost), srcDevice, ByteCount), Side::host,
                   Side::device, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copy_call(hStream, linear(dstDevice, srcDevice, ByteCount), Side::device, Side::device,
                   true);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                      size_t ByteCount) {
  return copy_call(nullptr, linear(dstDevice, srcDevice, ByteCount), Side::device, Side::device,
                   false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                           size_t ByteCount, CUstream hStream) {
  return copy_call(hStream, linear(dstDevice, srcDevice, ByteCount), Side::device, Side::device,
                   true);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, CUstream hStream) {
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0 || hStream == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = cuMemcpyAsync(dsts[i], srcs[i], sizes[i], hStream);
        error != CUDA_SUCCESS)
      return error;
  }
  return CUDA_SUCCESS;
}
