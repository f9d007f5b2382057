// libcublasLt for the simulated GPU: descriptors, one heuristic answer, matmul. Signatures and
// attribute numbers: cublasLt.h of CUDA 13. No arithmetic is done.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "api.hpp"
#include "gemm.hpp"

namespace {

using deepum::simgpu::cublas::element_bits;
using deepum::simgpu::cublas::enqueue;
using deepum::simgpu::cublas::kAllocFailed;
using deepum::simgpu::cublas::kInvalidValue;
using deepum::simgpu::cublas::kSuccess;
using deepum::simgpu::cublas::Matrix;
using deepum::simgpu::cublas::Product;
using deepum::simgpu::cublas::uses_matrix_units;

struct Layout {  // fits cublasLtMatrixLayoutOpaque_t (64 bytes), which a program may hold by value
  std::uint64_t rows, columns;
  std::int64_t leading, batch_stride;
  std::int32_t type, order, batches, reserved;
};
static_assert(sizeof(Layout) <= 64);
constexpr int kRowMajor = 1;

struct Description {  // fits cublasLtMatmulDescOpaque_t (256 bytes)
  std::int32_t compute, scale_type, pointer_mode, transposed[3], epilogue, auxiliary_type;
  std::int64_t auxiliary_leading, auxiliary_batch_stride, bias_batch_stride;
  std::uint64_t bias, auxiliary;
  std::int32_t bias_type, reserved;
};
static_assert(sizeof(Description) <= 256);

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  std::int32_t state;
  float waves;
  std::int32_t reserved[4];
};

constexpr int kEpilogueBias = 4, kEpilogueGradRelu = 8, kEpilogueBiasGradient = 16,
              kEpilogueGradGelu = 64, kEpilogueAuxiliary = 128, kEpilogueGradA = 256,
              kEpilogueGradB = 512;

// A member as an attribute: its place and size, or none.
struct Member {
  void* place = nullptr;
  std::size_t bytes = 0;
};
template <typename T>
Member member(T& value) {
  return {&value, sizeof value};
}

Member layout_member(Layout& l, int attribute) {
  switch (attribute) {
    case 0:
      return member(l.type);
    case 1:
      return member(l.order);
    case 2:
      return member(l.rows);
    case 3:
      return member(l.columns);
    case 4:
      return member(l.leading);
    case 5:
      return member(l.batches);
    case 6:
      return member(l.batch_stride);
    default:
      return {};
  }
}

Member description_member(Description& d, int attribute) {
  switch (attribute) {
    case 0:
      return member(d.compute);
    case 1:
      return member(d.scale_type);
    case 2:
      return member(d.pointer_mode);
    case 3:
    case 4:
    case 5:
      return member(d.transposed[attribute - 3]);
    case 7:
      return member(d.epilogue);
    case 8:
      return member(d.bias);
    case 10:
      return member(d.bias_batch_stride);
    case 11:
      return member(d.auxiliary);
    case 12:
      return member(d.auxiliary_leading);
    case 13:
      return member(d.auxiliary_batch_stride);
    case 22:
      return member(d.auxiliary_type);
    case 26:
      return member(d.bias_type);
    default:
      return {};
  }
}

// Attributes that change neither what is touched nor what it costs (scales, tiling hints) are
// accepted and dropped.
int set_attribute(Member to, const void* value, std::size_t bytes) {
  if (value == nullptr || (to.place != nullptr && bytes < to.bytes)) {
    return kInvalidValue;
  }
  if (to.place != nullptr) {
    std::memcpy(to.place, value, to.bytes);
  }
  return kSuccess;
}

int get_attribute(Member from, void* value, std::size_t bytes, std::size_t* written) {
  if (from.place == nullptr || (value != nullptr && bytes < from.bytes)) {
    return kInvalidValue;
  }
  if (written != nullptr) {
    *written = from.bytes;
  }
  if (value != nullptr) {
    std::memcpy(value, from.place, from.bytes);
  }
  return kSuccess;
}

int init_layout(Layout* l, int type, std::uint64_t rows, std::uint64_t columns,
                std::int64_t leading) {
  if (l == nullptr) {
    return kInvalidValue;
  }
  *l = {rows, columns, leading, 0, type, 0, 1, 0};
  return kSuccess;
}

int init_description(Description* d, int compute, int scale_type) {
  if (d == nullptr) {
    return kInvalidValue;
  }
  *d = {};
  d->compute = compute, d->scale_type = scale_type, d->epilogue = 1, d->auxiliary_type = -1,
  d->bias_type = -1;
  return kSuccess;
}

Matrix matrix(const void* address, const Layout& l) {
  const bool row_major = l.order == kRowMajor;
  return {reinterpret_cast<std::uint64_t>(address),
          l.type,
          0,
          static_cast<std::int64_t>(row_major ? l.columns : l.rows),
          static_cast<std::int64_t>(row_major ? l.rows : l.columns),
          l.leading,
          l.batch_stride};
}

bool is_zero(const void* value, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(value);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (p[i] != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

API(cublasLtCreate)(void** handle) {
  if (handle == nullptr) {
    return kInvalidValue;
  }
  *handle = new (std::nothrow) int(0);
  return *handle != nullptr ? kSuccess : kAllocFailed;
}
API(cublasLtDestroy)(void* handle) {
  delete static_cast<int*>(handle);
  return kSuccess;
}

API(cublasLtMatrixLayoutCreate)(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                std::int64_t leading) {
  if (layout == nullptr) {
    return kInvalidValue;
  }
  auto* made = new (std::nothrow) Layout;
  *layout = made;
  return made != nullptr ? init_layout(made, type, rows, columns, leading)
                         : static_cast<int>(kAllocFailed);
}
API(cublasLtMatrixLayoutInit_internal)(void* layout, std::size_t bytes, int type,
                                       std::uint64_t rows, std::uint64_t columns,
                                       std::int64_t leading) {
  return bytes < sizeof(Layout)
             ? static_cast<int>(kInvalidValue)
             : init_layout(static_cast<Layout*>(layout), type, rows, columns, leading);
}
API(cublasLtMatrixLayoutDestroy)(void* layout) {
  delete static_cast<Layout*>(layout);
  return kSuccess;
}
API(cublasLtMatrixLayoutSetAttribute)(void* layout, int attribute, const void* value,
                                      std::size_t bytes) {
  return layout == nullptr
             ? static_cast<int>(kInvalidValue)
             : set_attribute(layout_member(*static_cast<Layout*>(layout), attribute), value, bytes);
}
API(cublasLtMatrixLayoutGetAttribute)(void* layout, int attribute, void* value, std::size_t bytes,
                                      std::size_t* written) {
  return layout == nullptr ? static_cast<int>(kInvalidValue)
                           : get_attribute(layout_member(*static_cast<Layout*>(layout), attribute),
                                           value, bytes, written);
}

API(cublasLtMatmulDescCreate)(void** description, int compute, int scale_type) {
  if (description == nullptr) {
    return kInvalidValue;
  }
  auto* made = new (std::nothrow) Description;
  *description = made;
  return made != nullptr ? init_description(made, compute, scale_type)
                         : static_cast<int>(kAllocFailed);
}
API(cublasLtMatmulDescInit_internal)(void* description, std::size_t bytes, int compute,
                                     int scale_type) {
  return bytes < sizeof(Description)
             ? static_cast<int>(kInvalidValue)
             : init_description(static_cast<Description*>(description), compute, scale_type);
}
API(cublasLtMatmulDescDestroy)(void* description) {
  delete static_cast<Description*>(description);
  return kSuccess;
}
API(cublasLtMatmulDescSetAttribute)(void* description, int attribute, const void* value,
                                    std::size_t bytes) {
  return description == nullptr
             ? static_cast<int>(kInvalidValue)
             : set_attribute(description_member(*static_cast<Description*>(description), attribute),
                             value, bytes);
}
API(cublasLtMatmulDescGetAttribute)(void* description, int attribute, void* value,
                                    std::size_t bytes, std::size_t* written) {
  return description == nullptr
             ? static_cast<int>(kInvalidValue)
             : get_attribute(description_member(*static_cast<Description*>(description), attribute),
                             value, bytes, written);
}

// Preferences (workspace limit, alignments) do not change what the stand-in does.
API(cublasLtMatmulPreferenceCreate)(void** preference) {
  if (preference == nullptr) {
    return kInvalidValue;
  }
  *preference = new (std::nothrow) std::uint64_t[8]{};
  return *preference != nullptr ? kSuccess : kAllocFailed;
}
API(cublasLtMatmulPreferenceInit_internal)(void* preference, std::size_t bytes) {
  if (preference == nullptr) {
    return kInvalidValue;
  }
  std::memset(preference, 0, bytes);
  return kSuccess;
}
API(cublasLtMatmulPreferenceDestroy)(void* preference) {
  delete[] static_cast<std::uint64_t*>(preference);
  return kSuccess;
}
API(cublasLtMatmulPreferenceSetAttribute)(void* preference, int, const void* value, std::size_t) {
  return preference == nullptr || value == nullptr ? kInvalidValue : kSuccess;
}

API(cublasLtMatmulAlgoGetHeuristic)(void*, void* description, void* a, void* b, void* c, void* d,
                                    void*, int requested, void* results, int* returned) {
  if (description == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr ||
      results == nullptr || returned == nullptr || requested < 1) {
    return kInvalidValue;
  }
  *static_cast<Heuristic*>(results) = {};
  static_cast<Heuristic*>(results)->waves = 1.0F;
  *returned = 1;
  return kSuccess;
}

API(cublasLtMatmul)(void*, void* description, const void*, const void* a, void* a_layout,
                    const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                    void* d, void* d_layout, const void*, void*, std::size_t, CUstream stream) {
  if (description == nullptr || a_layout == nullptr || b_layout == nullptr || d_layout == nullptr) {
    return kInvalidValue;
  }
  const auto& desc = *static_cast<Description*>(description);
  const auto& la = *static_cast<Layout*>(a_layout);
  const auto& ld = *static_cast<Layout*>(d_layout);
  const auto& lc = c_layout != nullptr ? *static_cast<Layout*>(c_layout) : ld;
  Product p;
  p.a = matrix(a, la);
  p.b = matrix(b, *static_cast<Layout*>(b_layout));
  p.c = matrix(c, lc);
  p.d = matrix(d, ld);
  p.m = static_cast<std::int64_t>(ld.rows);
  p.n = static_cast<std::int64_t>(ld.columns);
  p.k = static_cast<std::int64_t>(desc.transposed[0] == 0 ? la.columns : la.rows);
  p.batches = ld.batches;
  // Host scalars only (pointer modes 1 to 4 keep beta, or all, on the device).
  p.reads_c = c != nullptr && (desc.pointer_mode != 0 || beta == nullptr ||
                               !is_zero(beta, element_bits(desc.scale_type) / 8));
  p.matrix_units = uses_matrix_units(la.type, desc.compute, false);
  const auto bytes = [](std::int64_t elements, int type, int fallback) {
    return static_cast<std::uint64_t>(elements) * element_bits(type < 0 ? fallback : type) / 8;
  };
  if (desc.bias != 0 && (desc.epilogue & (kEpilogueBias | kEpilogueBiasGradient | kEpilogueGradA |
                                          kEpilogueGradB)) != 0) {
    p.bias = desc.bias;
    p.writes_bias = (desc.epilogue & kEpilogueBias) == 0;
    p.bias_bytes =
        bytes((desc.epilogue & kEpilogueGradB) != 0 ? p.n : p.m, desc.bias_type, ld.type);
  }
  if (desc.auxiliary != 0 && (desc.epilogue & kEpilogueAuxiliary) != 0) {
    p.auxiliary = desc.auxiliary;
    p.writes_auxiliary = (desc.epilogue & (kEpilogueGradRelu | kEpilogueGradGelu)) == 0;
    p.auxiliary_bytes =
        bytes((p.n - 1) * desc.auxiliary_leading + p.m, desc.auxiliary_type, ld.type);
  }
  return enqueue(p, stream);
}

extern "C" __attribute__((visibility("default"))) std::size_t cublasLtGetVersion() {
  return deepum_sim_blas_version;
}
extern "C" __attribute__((visibility("default"))) std::size_t cublasLtGetCudartVersion() {
  return deepum_sim_blas_cudart_version;
}
