// Kernels that touch their large operands only at places that data tells: gathers, scatters,
// lookups in embedding tables.
#pragma once

#include <string_view>

namespace deepum::hooks {

// By the function's mangled name. Those of PyTorch (aten/src/ATen/native/cuda and sparse/cuda, 2.4
// to 2.12) are known; of others nothing is.
bool is_sparse(std::string_view function) noexcept;

}  // namespace deepum::hooks
