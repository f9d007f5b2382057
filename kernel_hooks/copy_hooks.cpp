// Copies, in every form the driver offers them.
#include <algorithm>

#include "transfers.hpp"

namespace deepum::hooks {
namespace {

// Rows of a pitched copy, as one run of bytes from the first to the last: what lies between rows
// belongs to the same allocation.
struct Pitched {
  std::uint64_t x, y, z, pitch, height;
};
Bytes span(CUmemorytype type, const void* host, CUdeviceptr device, const Pitched& at,
           std::uint64_t width, std::uint64_t rows, std::uint64_t planes) noexcept {
  if (type == CU_MEMORYTYPE_ARRAY || width == 0 || rows == 0 || planes == 0) {
    return {};
  }
  const std::uint64_t base =
      type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
  return {base + at.x + (at.y + at.z * at.height) * at.pitch,
          width + (rows - 1) * at.pitch + (planes - 1) * at.height * at.pitch};
}

template <typename Copy>
Bytes written_2d(const Copy& copy) noexcept {
  return span(copy.dstMemoryType, copy.dstHost, copy.dstDevice,
              {copy.dstXInBytes, copy.dstY, 0, copy.dstPitch, 0}, copy.WidthInBytes, copy.Height,
              1);
}
template <typename Copy>
Bytes read_2d(const Copy& copy) noexcept {
  return span(copy.srcMemoryType, copy.srcHost, copy.srcDevice,
              {copy.srcXInBytes, copy.srcY, 0, copy.srcPitch, 0}, copy.WidthInBytes, copy.Height,
              1);
}
template <typename Copy>
Bytes written_3d(const Copy& copy) noexcept {
  return span(copy.dstMemoryType, copy.dstHost, copy.dstDevice,
              {copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight},
              copy.WidthInBytes, copy.Height, copy.Depth);
}
template <typename Copy>
Bytes read_3d(const Copy& copy) noexcept {
  return span(copy.srcMemoryType, copy.srcHost, copy.srcDevice,
              {copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight},
              copy.WidthInBytes, copy.Height, copy.Depth);
}

template <bool kPerThread>
CUresult on_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return transfer(hash_text("cuMemcpy"), stream_of(nullptr, kPerThread), true, bytes_at(dst, bytes),
                  bytes_at(src, bytes), real<kPerThread>().cuMemcpy, dst, src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                         CUcontext src_context, size_t bytes) {
  return transfer(hash_text("cuMemcpyPeer"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyPeer, dst,
                  dst_context, src, src_context, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  return transfer(hash_text("cuMemcpyHtoD"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyHtoD_v2,
                  dst, src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes) {
  return transfer(hash_text("cuMemcpyDtoH"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyDtoH_v2,
                  dst, src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return transfer(hash_text("cuMemcpyDtoD"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyDtoD_v2,
                  dst, src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyDtoA_v2(CUarray dst_array, size_t dst_offset, CUdeviceptr src, size_t bytes) {
  return transfer(hash_text("cuMemcpyDtoA"), stream_of(nullptr, kPerThread), true, Bytes{},
                  bytes_at(src, bytes), real<kPerThread>().cuMemcpyDtoA_v2, dst_array, dst_offset,
                  src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src_array, size_t src_offset, size_t bytes) {
  return transfer(hash_text("cuMemcpyAtoD"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), Bytes{}, real<kPerThread>().cuMemcpyAtoD_v2, dst, src_array,
                  src_offset, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyHtoA_v2(CUarray dst_array, size_t dst_offset, const void* src, size_t bytes) {
  return transfer(hash_text("cuMemcpyHtoA"), stream_of(nullptr, kPerThread), true, Bytes{},
                  bytes_at(src, bytes), real<kPerThread>().cuMemcpyHtoA_v2, dst_array, dst_offset,
                  src, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyAtoH_v2(void* dst, CUarray src_array, size_t src_offset, size_t bytes) {
  return transfer(hash_text("cuMemcpyAtoH"), stream_of(nullptr, kPerThread), true,
                  bytes_at(dst, bytes), Bytes{}, real<kPerThread>().cuMemcpyAtoH_v2, dst, src_array,
                  src_offset, bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpyAtoA_v2(CUarray dst_array, size_t dst_offset, CUarray src_array,
                            size_t src_offset, size_t bytes) {
  return transfer(hash_text("cuMemcpyAtoA"), stream_of(nullptr, kPerThread), true, Bytes{}, Bytes{},
                  real<kPerThread>().cuMemcpyAtoA_v2, dst_array, dst_offset, src_array, src_offset,
                  bytes);
}

template <bool kPerThread>
CUresult on_cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2* copy) {
  return transfer(hash_text("cuMemcpy2D"), stream_of(nullptr, kPerThread), true,
                  copy ? written_2d(*copy) : Bytes{}, copy ? read_2d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy2D_v2, copy);
}

template <bool kPerThread>
CUresult on_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D_v2* copy) {
  return transfer(hash_text("cuMemcpy2DUnaligned"), stream_of(nullptr, kPerThread), true,
                  copy ? written_2d(*copy) : Bytes{}, copy ? read_2d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy2DUnaligned_v2, copy);
}

template <bool kPerThread>
CUresult on_cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2* copy) {
  return transfer(hash_text("cuMemcpy3D"), stream_of(nullptr, kPerThread), true,
                  copy ? written_3d(*copy) : Bytes{}, copy ? read_3d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy3D_v2, copy);
}

template <bool kPerThread>
CUresult on_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER_v1* copy) {
  return transfer(hash_text("cuMemcpy3DPeer"), stream_of(nullptr, kPerThread), true,
                  copy ? written_3d(*copy) : Bytes{}, copy ? read_3d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy3DPeer, copy);
}

template <bool kPerThread>
CUresult on_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyAsync, dst,
                  src, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                              CUcontext src_context, size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyPeerAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), bytes_at(src, bytes), real<kPerThread>().cuMemcpyPeerAsync,
                  dst, dst_context, src, src_context, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyHtoDAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), bytes_at(src, bytes),
                  real<kPerThread>().cuMemcpyHtoDAsync_v2, dst, src, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyDtoHAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), bytes_at(src, bytes),
                  real<kPerThread>().cuMemcpyDtoHAsync_v2, dst, src, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyDtoDAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), bytes_at(src, bytes),
                  real<kPerThread>().cuMemcpyDtoDAsync_v2, dst, src, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyHtoAAsync_v2(CUarray dst_array, size_t dst_offset, const void* src,
                                 size_t bytes, CUstream stream) {
  return transfer(hash_text("cuMemcpyHtoAAsync"), stream_of(stream, kPerThread), false, Bytes{},
                  bytes_at(src, bytes), real<kPerThread>().cuMemcpyHtoAAsync_v2, dst_array,
                  dst_offset, src, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyAtoHAsync_v2(void* dst, CUarray src_array, size_t src_offset, size_t bytes,
                                 CUstream stream) {
  return transfer(hash_text("cuMemcpyAtoHAsync"), stream_of(stream, kPerThread), false,
                  bytes_at(dst, bytes), Bytes{}, real<kPerThread>().cuMemcpyAtoHAsync_v2, dst,
                  src_array, src_offset, bytes, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D_v2* copy, CUstream stream) {
  return transfer(hash_text("cuMemcpy2DAsync"), stream_of(stream, kPerThread), false,
                  copy ? written_2d(*copy) : Bytes{}, copy ? read_2d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy2DAsync_v2, copy, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D_v2* copy, CUstream stream) {
  return transfer(hash_text("cuMemcpy3DAsync"), stream_of(stream, kPerThread), false,
                  copy ? written_3d(*copy) : Bytes{}, copy ? read_3d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy3DAsync_v2, copy, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER_v1* copy, CUstream stream) {
  return transfer(hash_text("cuMemcpy3DPeerAsync"), stream_of(stream, kPerThread), false,
                  copy ? written_3d(*copy) : Bytes{}, copy ? read_3d(*copy) : Bytes{},
                  real<kPerThread>().cuMemcpy3DPeerAsync, copy, stream);
}

// A batch is one execution; its copies may run in any order.
template <typename F, typename... A>
CUresult batch(const StreamRef& stream, const CUdeviceptr* to, const CUdeviceptr* from,
               const std::size_t* sizes, std::size_t count, const Function<F>& function,
               A... arguments) noexcept {
  if (stream.device < 0 || !to || !from || !sizes || capturing(stream)) {
    return forward(function, arguments...);
  }
  std::uint64_t sequence = 0;
  bool reported = false;
  {
    Execution execution(mix(hash_text("cuMemcpyBatchAsync"), count), DEEPUM_EXECUTE_COPY);
    for (std::size_t i = 0; i < count; ++i) {
      execution.add_bytes(to[i], sizes[i], Execution::Access::kWrite, 2 * i);
    }
    for (std::size_t i = 0; i < count; ++i) {
      execution.add_bytes(from[i], sizes[i], Execution::Access::kRead, 2 * i + 1);
    }
    reported = !execution.empty();
    if (reported) {
      sequence = execution.emit(stream);
    }
  }
  if (reported) {
    runtime::before_execute(stream.device, stream.handle, stream.id, sequence);
  }
  const CUresult result = forward(function, arguments...);
  if (reported && result == CUDA_SUCCESS) {
    runtime::after_execute(stream.device, stream.handle, stream.id);
  }
  return result;
}

Bytes operand(const CUmemcpy3DOperand& operand, const CUextent3D& extent) noexcept {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER || !extent.width || !extent.height ||
      !extent.depth) {
    return {};
  }
  const auto& at = operand.op.ptr;
  const std::uint64_t row = at.rowLength ? at.rowLength : extent.width;
  const std::uint64_t plane = at.layerHeight ? at.layerHeight : extent.height;
  return {at.ptr, extent.width + (extent.height - 1) * row + (extent.depth - 1) * row * plane};
}

template <typename F, typename... A>
CUresult batch_3d(const StreamRef& stream, const CUDA_MEMCPY3D_BATCH_OP* operations,
                  std::size_t count, const Function<F>& function, A... arguments) noexcept {
  if (stream.device < 0 || !operations || capturing(stream)) {
    return forward(function, arguments...);
  }
  std::uint64_t sequence = 0;
  bool reported = false;
  {
    Execution execution(mix(hash_text("cuMemcpy3DBatchAsync"), count), DEEPUM_EXECUTE_COPY);
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes to = operand(operations[i].dst, operations[i].extent);
      execution.add_bytes(to.address, to.bytes, Execution::Access::kWrite, 2 * i);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes from = operand(operations[i].src, operations[i].extent);
      execution.add_bytes(from.address, from.bytes, Execution::Access::kRead, 2 * i + 1);
    }
    reported = !execution.empty();
    if (reported) {
      sequence = execution.emit(stream);
    }
  }
  if (reported) {
    runtime::before_execute(stream.device, stream.handle, stream.id, sequence);
  }
  const CUresult result = forward(function, arguments...);
  if (reported && result == CUDA_SUCCESS) {
    runtime::after_execute(stream.device, stream.handle, stream.id);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes_v1* attrs, size_t* attr_idxs, size_t num_attrs,
                               size_t* fail_idx, CUstream stream) {
  return batch(stream_of(stream, kPerThread), dsts, srcs, sizes, count,
               real<kPerThread>().cuMemcpyBatchAsync, dsts, srcs, sizes, count, attrs, attr_idxs,
               num_attrs, fail_idx, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                  CUmemcpyAttributes_v1* attrs, size_t* attr_idxs, size_t num_attrs,
                                  CUstream stream) {
  return batch(stream_of(stream, kPerThread), dsts, srcs, sizes, count,
               real<kPerThread>().cuMemcpyBatchAsync_v2, dsts, srcs, sizes, count, attrs, attr_idxs,
               num_attrs, stream);
}

template <bool kPerThread>
CUresult on_cuMemcpy3DBatchAsync(size_t num_params, CUDA_MEMCPY3D_BATCH_OP_v1* op_list,
                                 size_t* fail_idx, unsigned long long flags, CUstream stream) {
  return batch_3d(stream_of(stream, kPerThread), op_list, num_params,
                  real<kPerThread>().cuMemcpy3DBatchAsync, num_params, op_list, fail_idx, flags,
                  stream);
}

template <bool kPerThread>
CUresult on_cuMemcpy3DBatchAsync_v2(size_t num_params, CUDA_MEMCPY3D_BATCH_OP_v1* op_list,
                                    unsigned long long flags, CUstream stream) {
  return batch_3d(stream_of(stream, kPerThread), op_list, num_params,
                  real<kPerThread>().cuMemcpy3DBatchAsync_v2, num_params, op_list, flags, stream);
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_COPY
#include "exports.inc"
