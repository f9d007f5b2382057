// Memsets: writes.
#include "transfers.hpp"

namespace deepum::hooks {
namespace {

template <bool kPerThread>
CUresult on_cuMemsetD8_v2(CUdeviceptr dst, unsigned char uc, size_t n) {
  return fill(hash_text("cuMemsetD8"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, n), real<kPerThread>().cuMemsetD8_v2, dst, uc, n);
}

template <bool kPerThread>
CUresult on_cuMemsetD16_v2(CUdeviceptr dst, unsigned short us, size_t n) {
  return fill(hash_text("cuMemsetD16"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, n * 2), real<kPerThread>().cuMemsetD16_v2, dst, us, n);
}

template <bool kPerThread>
CUresult on_cuMemsetD32_v2(CUdeviceptr dst, unsigned ui, size_t n) {
  return fill(hash_text("cuMemsetD32"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, n * 4), real<kPerThread>().cuMemsetD32_v2, dst, ui, n);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D8_v2(CUdeviceptr dst, size_t dst_pitch, unsigned char uc, size_t width,
                            size_t height) {
  return fill(hash_text("cuMemsetD2D8"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, width && height ? width * 1 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D8_v2, dst, dst_pitch, uc, width, height);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D16_v2(CUdeviceptr dst, size_t dst_pitch, unsigned short us, size_t width,
                             size_t height) {
  return fill(hash_text("cuMemsetD2D16"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, width && height ? width * 2 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D16_v2, dst, dst_pitch, us, width, height);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D32_v2(CUdeviceptr dst, size_t dst_pitch, unsigned ui, size_t width,
                             size_t height) {
  return fill(hash_text("cuMemsetD2D32"), stream_of(nullptr, kPerThread), Waits::kIfManaged,
              bytes_at(dst, width && height ? width * 4 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D32_v2, dst, dst_pitch, ui, width, height);
}

template <bool kPerThread>
CUresult on_cuMemsetD8Async(CUdeviceptr dst, unsigned char uc, size_t n, CUstream stream) {
  return fill(hash_text("cuMemsetD8Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, n), real<kPerThread>().cuMemsetD8Async, dst, uc, n, stream);
}

template <bool kPerThread>
CUresult on_cuMemsetD16Async(CUdeviceptr dst, unsigned short us, size_t n, CUstream stream) {
  return fill(hash_text("cuMemsetD16Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, n * 2), real<kPerThread>().cuMemsetD16Async, dst, us, n, stream);
}

template <bool kPerThread>
CUresult on_cuMemsetD32Async(CUdeviceptr dst, unsigned ui, size_t n, CUstream stream) {
  return fill(hash_text("cuMemsetD32Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, n * 4), real<kPerThread>().cuMemsetD32Async, dst, ui, n, stream);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D8Async(CUdeviceptr dst, size_t dst_pitch, unsigned char uc, size_t width,
                              size_t height, CUstream stream) {
  return fill(hash_text("cuMemsetD2D8Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, width && height ? width * 1 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D8Async, dst, dst_pitch, uc, width, height, stream);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D16Async(CUdeviceptr dst, size_t dst_pitch, unsigned short us, size_t width,
                               size_t height, CUstream stream) {
  return fill(hash_text("cuMemsetD2D16Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, width && height ? width * 2 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D16Async, dst, dst_pitch, us, width, height, stream);
}

template <bool kPerThread>
CUresult on_cuMemsetD2D32Async(CUdeviceptr dst, size_t dst_pitch, unsigned ui, size_t width,
                               size_t height, CUstream stream) {
  return fill(hash_text("cuMemsetD2D32Async"), stream_of(stream, kPerThread), Waits::kNever,
              bytes_at(dst, width && height ? width * 4 + (height - 1) * dst_pitch : 0),
              real<kPerThread>().cuMemsetD2D32Async, dst, dst_pitch, ui, width, height, stream);
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_MEMSET
#include "exports.inc"
