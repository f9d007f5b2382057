// Matrix products as the stand-in libraries launch them: one kernel of a built-in host module
// through the driver API, so that whoever interposes the driver sees a kernel name and pointer
// arguments, as with the real libraries.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::simgpu::cublas {

// cublasStatus_t
enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15
};

// A column-major operand: `columns` columns of `rows` elements, `leading` apart; `batch_stride`
// elements between matrices.
struct Matrix {
  std::uint64_t address = 0;
  std::int32_t type = 0;  // cudaDataType
  std::int32_t reserved = 0;
  std::int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
};

struct Product {  // D = alpha op(A) op(B) + beta C
  Matrix a, b, c, d;
  // read, or written by an epilogue that makes its gradient.
  std::uint64_t bias = 0, bias_bytes = 0;
  // Of GELU / ReLU epilogues: written, or read by their gradients.
  std::uint64_t auxiliary = 0, auxiliary_bytes = 0;
  bool writes_bias = false, writes_auxiliary = false;
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  bool reads_c = true;
  bool matrix_units = false;
};

std::uint32_t element_bits(int type) noexcept;
bool is_complex(int type) noexcept;
// Whether a product of these types runs on the matrix units. compute: cublasComputeType_t; tf32:
// fp32 may be rounded to TF32.
bool uses_matrix_units(int type, int compute, bool tf32) noexcept;

// How a product is cut: rows x columns tiles of tile_rows x tile_columns elements of D, each of
// which a thread block computes; splits: thread blocks that share a tile, along K.
struct Tiling {
  std::int64_t tile_rows, tile_columns;
  std::int64_t rows, columns;
  std::int64_t splits;
};
Tiling choose_tiling(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches,
                     int multiprocessors) noexcept;

Status enqueue(const Product& product, CUstream stream) noexcept;

}  // namespace deepum::simgpu::cublas
