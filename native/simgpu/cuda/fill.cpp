// Memsets.
#include "graphs.hpp"
#include "operation.hpp"

using namespace deepum::simgpu;

namespace {

CUresult fill(CUstream handle, std::uint64_t destination, std::uint64_t pitch, std::uint32_t value,
              std::uint32_t element, std::uint64_t width, std::uint64_t height, bool asynchronous) {
  Call call(Need::context, Role::program);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (!asynchronous) {
    if (const CUresult error = refuse_in_capture(call); error != CUDA_SUCCESS) return error;
  }
  const FillWork work{destination, width, height, pitch, value, element};
  const Allocation* const allocation = call.state().memory.find(destination);
  if (destination % element != 0 ||
      (height > 1 && (pitch < width * element || pitch % element != 0)))
    return CUDA_ERROR_INVALID_VALUE;
  if (allocation == nullptr || width > (1ull << 46) ||
      work.span() > allocation->end() - destination)
    return CUDA_ERROR_INVALID_VALUE;
  const bool pinned_host = !allocation->on_gpu();
  if (const CUresult error = submit(call, stream, work); error != CUDA_SUCCESS) return error;
  // Of device memory also the synchronous call returns at once ("API synchronization behavior").
  return !asynchronous && pinned_host ? finish_stream(call, stream) : CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(nullptr, dstDevice, 0, uc, 1, N, 1, false);
}
CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(nullptr, dstDevice, 0, us, 2, N, 1, false);
}
CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(nullptr, dstDevice, 0, ui, 4, N, 1, false);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, uc, 1, Width, Height, false);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, us, 2, Width, Height, false);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, ui, 4, Width, Height, false);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, uc, 1, N, 1, true);
}
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, us, 2, N, 1, true);
}
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, ui, 4, N, 1, true);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, uc, 1, Width, Height, true);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, us, 2, Width, Height, true);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, ui, 4, Width, Height, true);
}
