// Copies of rectangles and boxes between linear memory. Arrays (texture memory) are not simulated.
#include "copy_call.hpp"
#include "not_simulated.hpp"

using namespace deepum::simgpu;

namespace {

struct End {
  std::uint64_t address;
  Side side;
};

bool locate(CUmemorytype type, const void* host, CUdeviceptr device, End& end) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      end = {reinterpret_cast<std::uint64_t>(host), Side::host};
      return true;
    case CU_MEMORYTYPE_DEVICE:
      end = {device, Side::device};
      return true;
    case CU_MEMORYTYPE_UNIFIED:
      end = {device, Side::any};
      return true;
    default:
      return false;
  }
}

// Both structures name their fields alike; the 2D one has no slices.
template <typename Copy>
CUresult box(const Copy* copy, const char* name, CopyWork& work, Side& destination, Side& source) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return not_simulated(name);
  End to{}, from{};
  if (!locate(copy->dstMemoryType, copy->dstHost, copy->dstDevice, to) ||
      !locate(copy->srcMemoryType, copy->srcHost, copy->srcDevice, from)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  work.width = copy->WidthInBytes;
  work.height = copy->Height;
  work.destination_pitch =
      copy->dstPitch != 0 ? copy->dstPitch : copy->dstXInBytes + copy->WidthInBytes;
  work.source_pitch = copy->srcPitch != 0 ? copy->srcPitch : copy->srcXInBytes + copy->WidthInBytes;
  work.destination = to.address + copy->dstY * work.destination_pitch + copy->dstXInBytes;
  work.source = from.address + copy->srcY * work.source_pitch + copy->srcXInBytes;
  if constexpr (requires { copy->Depth; }) {
    work.depth = copy->Depth;
    work.destination_slice = work.destination_pitch *
                             (copy->dstHeight != 0 ? copy->dstHeight : copy->dstY + copy->Height);
    work.source_slice =
        work.source_pitch * (copy->srcHeight != 0 ? copy->srcHeight : copy->srcY + copy->Height);
    work.destination += copy->dstZ * work.destination_slice;
    work.source += copy->srcZ * work.source_slice;
  }
  if (work.height > 1 && (work.destination_pitch < work.width || work.source_pitch < work.width))
    return CUDA_ERROR_INVALID_VALUE;
  destination = to.side;
  source = from.side;
  return CUDA_SUCCESS;
}

template <typename Copy>
CUresult rectangle(const Copy* copy, CUstream stream, bool asynchronous, const char* name) {
  CopyWork work;
  Side destination{}, source{};
  if (const CUresult error = box(copy, name, work, destination, source); error != CUDA_SUCCESS)
    return error;
  return copy_call(stream, std::move(work), destination, source, asynchronous);
}

}  // namespace

namespace deepum::simgpu {

CUresult box_of(const CUDA_MEMCPY3D& copy, const char* name, CopyWork& work, Side& destination,
                Side& source) {
  return box(&copy, name, work, destination, source);
}

}  // namespace deepum::simgpu

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) {
  return rectangle(pCopy, nullptr, false, "cuMemcpy2D of an array");
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  return rectangle(pCopy, nullptr, false, "cuMemcpy2DUnaligned of an array");
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return rectangle(pCopy, hStream, true, "cuMemcpy2DAsync of an array");
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
  return rectangle(pCopy, nullptr, false, "cuMemcpy3D of an array");
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return rectangle(pCopy, hStream, true, "cuMemcpy3DAsync of an array");
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* pCopy) {
  return rectangle(pCopy, nullptr, false, "cuMemcpy3DPeer of an array");
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return rectangle(pCopy, hStream, true, "cuMemcpy3DPeerAsync of an array");
}
