// libcublas for the simulated GPU: handles, GEMM, GEMV and dot products of the dense real and
// complex types. Signatures: cublas_api.h, the same in CUDA 12 and 13. No arithmetic is done.
#include <cstddef>
#include <cstdint>
#include <new>
#include "api.hpp"

#include "gemm.hpp"

namespace {

using deepum::simgpu::cublas::element_bits;
using deepum::simgpu::cublas::enqueue;
using deepum::simgpu::cublas::is_complex;
using deepum::simgpu::cublas::kAllocFailed;
using deepum::simgpu::cublas::kInvalidValue;
using deepum::simgpu::cublas::kNotInitialized;
using deepum::simgpu::cublas::kSuccess;
using deepum::simgpu::cublas::Product;
using deepum::simgpu::cublas::uses_matrix_units;

constexpr int kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5;
constexpr int kTf32Math = 3, kPointerModeDevice = 1, kCompute32 = 68;

struct Handle {
  CUstream stream = nullptr;
  int math_mode = 0, pointer_mode = 0, atomics_mode = 0, sm_count_target = 0;
};

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// beta decides whether C is read; on the device its value is unknown, so C counts as read.
bool reads_c(const Handle& handle, const void* beta, int type) {
  if (beta == nullptr || handle.pointer_mode == kPointerModeDevice) {
    return true;
  }
  switch (type) {
    case kReal64:
      return *static_cast<const double*>(beta) != 0;
    case kComplex32: {
      const auto* z = static_cast<const float*>(beta);
      return z[0] != 0 || z[1] != 0;
    }
    case kComplex64: {
      const auto* z = static_cast<const double*>(beta);
      return z[0] != 0 || z[1] != 0;
    }
    case 2:
      // Half: zero but for its sign.
      return (*static_cast<const std::uint16_t*>(beta) & 0x7fff) != 0;
    default:
      return *static_cast<const float*>(beta) != 0;
  }
}

struct Operands {
  const void* a;
  int a_type;
  std::int64_t lda, stride_a;
  const void* b;
  int b_type;
  std::int64_t ldb, stride_b;
  void* c;
  int c_type;
  std::int64_t ldc, stride_c;
};

// scale_type: of alpha and beta, as cudaDataType.
int gemm(void* handle_pointer, int trans_a, int trans_b, std::int64_t m, std::int64_t n,
         std::int64_t k, const void* beta, int scale_type, const Operands& o, std::int64_t batches,
         int compute) {
  if (handle_pointer == nullptr) {
    return kNotInitialized;
  }
  const Handle& handle = *static_cast<Handle*>(handle_pointer);
  Product p;
  p.m = m, p.n = n, p.k = k, p.batches = batches;
  p.a = {address(o.a), o.a_type, 0, trans_a == 0 ? m : k, trans_a == 0 ? k : m, o.lda, o.stride_a};
  p.b = {address(o.b), o.b_type, 0, trans_b == 0 ? k : n, trans_b == 0 ? n : k, o.ldb, o.stride_b};
  p.c = {address(o.c), o.c_type, 0, m, n, o.ldc, o.stride_c};
  p.d = p.c;
  p.reads_c = reads_c(handle, beta, scale_type);
  p.matrix_units = uses_matrix_units(o.a_type, compute, handle.math_mode == kTf32Math);
  return enqueue(p, handle.stream);
}

int scale_type_of(int compute, int c_type) {
  switch (compute) {
    case 64:
    case 65:
      return 2;
    case 70:
    case 71:
    case 79:
      return is_complex(c_type) ? kComplex64 : kReal64;
    case 72:
    case 73:
      return 10;
    default:
      return is_complex(c_type) ? kComplex32 : kReal32;
  }
}

int dot(void* handle, std::int64_t n, const void* x, int x_type, std::int64_t incx, const void* y,
        int y_type, std::int64_t incy, void* result, int result_type) {
  if (handle == nullptr) {
    return kNotInitialized;
  }
  const Handle& h = *static_cast<Handle*>(handle);
  Product p;
  p.m = p.n = 1, p.k = n;
  p.a = {address(x), x_type, 0, 1, n, incx < 0 ? -incx : incx, 0};
  p.b = {address(y), y_type, 0, 1, n, incy < 0 ? -incy : incy, 0};
  p.reads_c = false;
  if (h.pointer_mode == kPointerModeDevice) {
    p.d = {address(result), result_type, 0, 1, 1, 1, 0};
  } else {
    for (std::uint32_t i = 0; i < element_bits(result_type) / 8; ++i) {
      static_cast<unsigned char*>(result)[i] = 0;  // no arithmetic: results read as 0
    }
  }
  return enqueue(p, h.stream);
}

}  // namespace

API(cublasCreate_v2)(void** handle) {
  if (handle == nullptr) {
    return kInvalidValue;
  }
  *handle = new (std::nothrow) Handle;
  return *handle != nullptr ? kSuccess : kAllocFailed;
}
API(cublasDestroy_v2)(void* handle) {
  if (handle == nullptr) {
    return kNotInitialized;
  }
  delete static_cast<Handle*>(handle);
  return kSuccess;
}
API(cublasGetVersion_v2)(void*, int* version) {
  return version == nullptr ? kInvalidValue : (*version = deepum_sim_blas_version, kSuccess);
}
API(cublasGetProperty)(int property, int* value) {
  if (value == nullptr || property < 0 || property > 2) {
    return kInvalidValue;
  }
  *value = property == 0 ? 13 : property == 1 ? 1 : 0;
  return kSuccess;
}
API(cublasSetWorkspace_v2)(void* handle, void*, std::size_t) {
  return handle == nullptr ? kNotInitialized : kSuccess;
}

#define ACCESSORS(setter, getter, member, type)                        \
  API(setter)(void* handle, type value) {                              \
    if (handle == nullptr) return kNotInitialized;                     \
    static_cast<Handle*>(handle)->member = value;                      \
    return kSuccess;                                                   \
  }                                                                    \
  API(getter)(void* handle, type* value) {                             \
    if (handle == nullptr || value == nullptr) return kNotInitialized; \
    *value = static_cast<Handle*>(handle)->member;                     \
    return kSuccess;                                                   \
  }

#define GEMM(letter, type, scalar)                                                                \
  API(cublas##letter##gemm_v2)(void* handle, int ta, int tb, int m, int n, int k, const void*,    \
                               const void* a, int lda, const void* b, int ldb, const void* beta,  \
                               void* c, int ldc) {                                                \
    return gemm(handle, ta, tb, m, n, k, beta, type,                                              \
                {a, type, lda, 0, b, type, ldb, 0, c, type, ldc, 0}, 1, scalar);                  \
  }                                                                                               \
  API(cublas##letter##gemmStridedBatched)(void* handle, int ta, int tb, int m, int n, int k,      \
                                          const void*, const void* a, int lda, long long sa,      \
                                          const void* b, int ldb, long long sb, const void* beta, \
                                          void* c, int ldc, long long sc, int batches) {          \
    return gemm(handle, ta, tb, m, n, k, beta, type,                                              \
                {a, type, lda, sa, b, type, ldb, sb, c, type, ldc, sc}, batches, scalar);         \
  }                                                                                               \
  API(cublas##letter##gemv_v2)(void* handle, int ta, int m, int n, const void*, const void* a,    \
                               int lda, const void* x, int incx, const void* beta, void* y,       \
                               int incy) {                                                        \
    const std::int64_t rows = ta == 0 ? m : n, inner = ta == 0 ? n : m;                           \
    return gemm(handle, ta, 1, rows, 1, inner, beta, type,                                        \
                {a, type, lda, 0, x, type, incx < 0 ? -incx : incx, 0, y, type,                   \
                 static_cast<std::int64_t>(incy) * rows, 0},                                      \
                1, scalar);                                                                       \
  }

ACCESSORS(cublasSetStream_v2, cublasGetStream_v2, stream, CUstream)
ACCESSORS(cublasSetMathMode, cublasGetMathMode, math_mode, int)
ACCESSORS(cublasSetPointerMode_v2, cublasGetPointerMode_v2, pointer_mode, int)
ACCESSORS(cublasSetAtomicsMode, cublasGetAtomicsMode, atomics_mode, int)
ACCESSORS(cublasSetSmCountTarget, cublasGetSmCountTarget, sm_count_target, int)

GEMM(S, kReal32, kCompute32)
GEMM(D, kReal64, 70)
GEMM(C, kComplex32, kCompute32)
GEMM(Z, kComplex64, 70)

API(cublasHgemm)(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a,
                 int lda, const void* b, int ldb, const void* beta, void* c, int ldc) {
  return gemm(handle, ta, tb, m, n, k, beta, 2, {a, 2, lda, 0, b, 2, ldb, 0, c, 2, ldc, 0}, 1, 64);
}
API(cublasHgemmStridedBatched)(void* handle, int ta, int tb, int m, int n, int k, const void*,
                               const void* a, int lda, long long sa, const void* b, int ldb,
                               long long sb, const void* beta, void* c, int ldc, long long sc,
                               int batches) {
  return gemm(handle, ta, tb, m, n, k, beta, 2, {a, 2, lda, sa, b, 2, ldb, sb, c, 2, ldc, sc},
              batches, 64);
}
API(cublasSgemmEx)(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a,
                   int a_type, int lda, const void* b, int b_type, int ldb, const void* beta,
                   void* c, int c_type, int ldc) {
  return gemm(handle, ta, tb, m, n, k, beta, kReal32,
              {a, a_type, lda, 0, b, b_type, ldb, 0, c, c_type, ldc, 0}, 1, kCompute32);
}
API(cublasGemmEx)(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a,
                  int a_type, int lda, const void* b, int b_type, int ldb, const void* beta,
                  void* c, int c_type, int ldc, int compute, int) {
  return gemm(handle, ta, tb, m, n, k, beta, scale_type_of(compute, c_type),
              {a, a_type, lda, 0, b, b_type, ldb, 0, c, c_type, ldc, 0}, 1, compute);
}
API(cublasGemmStridedBatchedEx)(void* handle, int ta, int tb, int m, int n, int k, const void*,
                                const void* a, int a_type, int lda, long long sa, const void* b,
                                int b_type, int ldb, long long sb, const void* beta, void* c,
                                int c_type, int ldc, long long sc, int batches, int compute, int) {
  return gemm(handle, ta, tb, m, n, k, beta, scale_type_of(compute, c_type),
              {a, a_type, lda, sa, b, b_type, ldb, sb, c, c_type, ldc, sc}, batches, compute);
}

API(cublasSdot_v2)(void* h, int n, const void* x, int incx, const void* y, int incy, void* result) {
  return dot(h, n, x, kReal32, incx, y, kReal32, incy, result, kReal32);
}
API(cublasDdot_v2)(void* h, int n, const void* x, int incx, const void* y, int incy, void* result) {
  return dot(h, n, x, kReal64, incx, y, kReal64, incy, result, kReal64);
}
API(cublasDotEx)(void* h, int n, const void* x, int x_type, int incx, const void* y, int y_type,
                 int incy, void* result, int result_type, int) {
  return dot(h, n, x, x_type, incx, y, y_type, incy, result, result_type);
}
