#include "gemm.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "../host_module.h"
#include "../runs.hpp"

namespace deepum::simgpu::cublas {
namespace {

// The pointers come first and one by one, the shape after them as one struct without pointers.
struct Operand {
  std::uint64_t element_bits;
  std::int64_t rows, columns, leading, batch_stride;
};
struct Shape {
  Operand a, b, c, d;
  std::uint64_t bias_bytes, auxiliary_bytes, writes_bias, writes_auxiliary;
  std::int64_t m, n, k, batches;
  std::uint64_t reads_c, complex_type;
  Tiling tiling;
};
constexpr std::uint32_t kParameterSizes[] = {8, 8, 8, 8, 8, 8, sizeof(Shape)};
constexpr std::uint32_t kParameters = std::size(kParameterSizes);

template <typename T>
T parameter(const deepum_host_launch* launch, std::size_t index) {
  T value;
  std::memcpy(&value, launch->parameters[index], sizeof value);
  return value;
}

// Of all batches: interleaved ones (attention heads) fill the gaps. Columns of elements smaller
// than a byte end with one.
std::vector<Run> places(const Operand& o, std::int64_t batches) {
  if (o.rows <= 0 || o.columns <= 0 || batches <= 0) {
    return {};
  }
  const auto bytes = [&](std::int64_t elements) {
    return (static_cast<std::uint64_t>(elements) * o.element_bits + 7) / 8;
  };
  return runs({{static_cast<std::uint64_t>(o.columns), bytes(o.leading)},
               {static_cast<std::uint64_t>(batches), bytes(std::abs(o.batch_stride))}},
              bytes(o.rows));
}

std::size_t accesses(const deepum_host_launch* launch, deepum_host_access* out, std::size_t most) {
  const auto shape = parameter<Shape>(launch, 6);
  const Operand* operands[] = {&shape.a, &shape.b, &shape.c, &shape.d};
  std::size_t count = 0;
  auto add = [&](std::uint64_t address, const std::vector<Run>& runs, bool read, bool write) {
    for (const Run& run : runs) {
      if (address == 0 || run.bytes == 0) {
        continue;
      }
      if (count < most) {
        out[count] = {address + run.offset, run.bytes, read ? 1u : 0u, write ? 1u : 0u};
      }
      ++count;
    }
  };
  const auto c = parameter<std::uint64_t>(launch, 2);
  const auto d = parameter<std::uint64_t>(launch, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    add(parameter<std::uint64_t>(launch, i), places(*operands[i], shape.batches), true, false);
  }
  if (shape.reads_c != 0 && c != d) {
    add(c, places(shape.c, shape.batches), true, false);
  }
  add(parameter<std::uint64_t>(launch, 4), {{0, shape.bias_bytes}}, shape.writes_bias == 0,
      shape.writes_bias != 0);
  add(parameter<std::uint64_t>(launch, 5), {{0, shape.auxiliary_bytes}},
      shape.writes_auxiliary == 0, shape.writes_auxiliary != 0);
  add(d, places(shape.d, shape.batches), shape.reads_c != 0 && c == d, true);
  return count;
}

// What the tiles compute, their overhang included (tile quantisation). Rates are those of FP32 and,
// with matrix units, of FP16: TF32 takes twice as long as FP16 (A100 white paper: 156 and 312
// TFLOPS), FP64 twice as long as FP32 (V100, A100: 7 and 14, 9.7 and 19.5; a GeForce far longer),
// FP8 half as long as FP16.
double flops_at(const deepum_host_launch* launch, double full_rate_bits) {
  const auto shape = parameter<Shape>(launch, 6);
  const Tiling& t = shape.tiling;
  const double covered =
      static_cast<double>(t.rows * t.columns) * static_cast<double>(t.tile_rows * t.tile_columns);
  const double products =
      covered * static_cast<double>(shape.k) * static_cast<double>(shape.batches);
  const double slower = std::max(static_cast<double>(shape.a.element_bits) / full_rate_bits, 0.5);
  // A complex element has two parts, so twice the bits.
  return products * (shape.complex_type != 0 ? 4.0 : 2.0) * slower;
}
double flops(const deepum_host_launch* launch) { return flops_at(launch, 32); }
double matrix_unit_flops(const deepum_host_launch* launch) { return flops_at(launch, 16); }

constexpr deepum_host_kernel kKernels[] = {
    {"deepum_sim_gemm", kParameters, kParameterSizes, nullptr, accesses, flops, 0, 1, 1, 0},
    {"deepum_sim_gemm_matrix_units", kParameters, kParameterSizes, nullptr, accesses,
     matrix_unit_flops, 1, 1, 1, 0},
};

// Resolved as any client of the driver does, so that an interposer is on the way.
struct DriverCalls {
  CUresult (*library_load)(CUlibrary*, const char*, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) = nullptr;
  CUresult (*get_kernel)(CUkernel*, CUlibrary, const char*) = nullptr;
  CUresult (*context_device)(CUdevice*) = nullptr;
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**) = nullptr;
  std::array<CUkernel, std::size(kKernels)> kernels{};
  bool ready = false;
};

template <typename F>
void resolve(void* driver, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(driver, name));
}

const DriverCalls& calls() {
  static DriverCalls table;
  static std::once_flag once;
  std::call_once(once, [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    Dl_info self{};
    if (driver == nullptr || dladdr(reinterpret_cast<const void*>(&calls), &self) == 0) {
      std::fprintf(stderr,
                   "deepum-sim: error: libcuda.so.1 cannot be loaded: %s; start the program with "
                   "deepum run\n",
                   dlerror());
      return;
    }
    resolve(driver, "cuLibraryLoadFromFile", table.library_load);
    resolve(driver, "cuLibraryGetKernel", table.get_kernel);
    resolve(driver, "cuLaunchKernel", table.launch);
    resolve(driver, "cuCtxGetDevice", table.context_device);
    resolve(driver, "cuDeviceGetAttribute", table.attribute);
    CUlibrary library = nullptr;
    if (table.library_load == nullptr || table.get_kernel == nullptr || table.launch == nullptr ||
        table.library_load(&library, self.dli_fname, nullptr, nullptr, 0, nullptr, nullptr, 0) !=
            CUDA_SUCCESS) {
      std::fprintf(stderr,
                   "deepum-sim: error: this libcuda.so.1 takes no host modules; start the program "
                   "with deepum run --device sim\n");
      return;
    }
    table.ready = true;
    for (std::size_t i = 0; i < std::size(kKernels); ++i) {
      table.ready = table.ready &&
                    table.get_kernel(&table.kernels[i], library, kKernels[i].name) == CUDA_SUCCESS;
    }
  });
  return table;
}

// Of the current device; 1 if it does not say.
int multiprocessors(const DriverCalls& driver) {
  CUdevice device = 0;
  int count = 0;
  if (driver.context_device == nullptr || driver.attribute == nullptr ||
      driver.context_device(&device) != CUDA_SUCCESS ||
      driver.attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS) {
    return 1;
  }
  return std::max(count, 1);
}

Operand operand(const Matrix& m) {
  return {element_bits(m.type), m.rows, m.columns, m.leading, m.batch_stride};
}

}  // namespace

std::uint32_t element_bits(int type) noexcept {
  switch (type) {  // cudaDataType of library_types.h
    case 16:
    case 18:
    case 33:
      return 4;
    case 31:
    case 32:
      return 6;
    case 3:
    case 8:
    case 17:
    case 19:
    case 28:
    case 29:
    case 30:
      return 8;
    case 2:
    case 14:
    case 20:
    case 22:
    case 7:
    case 9:
      return 16;
    case 0:
    case 10:
    case 12:
    case 6:
    case 15:
    case 21:
    case 23:
      return 32;
    case 1:
    case 24:
    case 26:
    case 4:
    case 11:
    case 13:
      return 64;
    case 5:
    case 25:
    case 27:
      return 128;
    default:
      return 32;
  }
}

bool is_complex(int type) noexcept { return type == 4 || type == 5 || type == 6 || type == 15; }

bool uses_matrix_units(int type, int compute, bool tf32) noexcept {
  const std::uint32_t bits = element_bits(type);
  if (type == 0 || type == 4) {  // fp32: only if the caller allows rounding
    return tf32 || compute == 74 || compute == 75 || compute == 77;
  }
  return bits <= 16;
}

// Kernels of the real library have names like volta_sgemm_128x64_nn and come with and without split
// K; which it takes when is not published. Here: tiles of 128 in each dimension unless the matrix
// ends before, and K split as soon as that fills the multiprocessors' waves noticeably better.
// Partial sums of a split are added in passing [?].
Tiling choose_tiling(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches,
                     int multiprocessors) noexcept {
  constexpr std::int64_t kMostSplits = 16, kLeastK = 512;
  constexpr double kWorthwhile = 0.9;  // of the time [?]
  const auto edge = [](std::int64_t size) -> std::int64_t {
    if (size <= 16) {
      return std::max<std::int64_t>(size, 1);  // vectors: other kernels
    }
    return size <= 32 ? 32 : size <= 64 ? 64 : 128;
  };
  Tiling tiling{edge(m), edge(n), 0, 0, 1};
  tiling.rows = (m + tiling.tile_rows - 1) / tiling.tile_rows;
  tiling.columns = (n + tiling.tile_columns - 1) / tiling.tile_columns;
  const double tiles = static_cast<double>(tiling.rows) * static_cast<double>(tiling.columns) *
                       static_cast<double>(batches);
  const auto time = [&](std::int64_t splits) {
    const auto parts = static_cast<double>(splits);
    return std::ceil(tiles * parts / multiprocessors) / parts;
  };
  for (std::int64_t splits = 2; splits <= kMostSplits && k / splits >= kLeastK; ++splits) {
    if (time(splits) < kWorthwhile * time(tiling.splits)) {
      tiling.splits = splits;
    }
  }
  return tiling;
}

Status enqueue(const Product& p, CUstream stream) noexcept {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batches < 0) {
    return kInvalidValue;
  }
  if (p.m == 0 || p.n == 0 || p.batches == 0) {
    return kSuccess;
  }
  const DriverCalls& driver = calls();
  if (!driver.ready) {
    return kNotInitialized;
  }
  const Tiling tiling = choose_tiling(p.m, p.n, p.k, p.batches, multiprocessors(driver));
  const auto flag = [](bool value) -> std::uint64_t { return value ? 1 : 0; };
  Shape shape{operand(p.a),
              operand(p.b),
              operand(p.c),
              operand(p.d),
              p.bias_bytes,
              p.auxiliary_bytes,
              flag(p.writes_bias),
              flag(p.writes_auxiliary),
              p.m,
              p.n,
              p.k,
              p.batches,
              flag(p.reads_c),
              flag(is_complex(p.d.type)),
              tiling};
  std::uint64_t pointers[] = {p.a.address, p.b.address, p.c.address,
                              p.d.address, p.bias,      p.auxiliary};
  void* parameters[kParameters];
  for (std::size_t i = 0; i < std::size(pointers); ++i) {
    parameters[i] = &pointers[i];
  }
  parameters[6] = &shape;
  const auto dimension = [](std::int64_t size) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(size, 1, 65535));
  };
  const CUresult result = driver.launch(
      reinterpret_cast<CUfunction>(driver.kernels[p.matrix_units ? 1 : 0]), dimension(tiling.rows),
      dimension(tiling.columns), dimension(p.batches * tiling.splits), 256, 1, 1, 0, stream,
      parameters, nullptr);
  return result == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
}

}  // namespace deepum::simgpu::cublas

extern "C" __attribute__((visibility("default")))
const deepum_host_module_table deepum_host_module = {
    DEEPUM_HOST_MODULE_MAGIC, DEEPUM_HOST_MODULE_VERSION,
    static_cast<std::uint32_t>(std::size(deepum::simgpu::cublas::kKernels)),
    deepum::simgpu::cublas::kKernels};
