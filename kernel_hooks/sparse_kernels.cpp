#include "sparse_kernels.hpp"

#include <algorithm>

namespace deepum::hooks {
namespace {

// Identifiers of a mangled name, or how one begins, with the length that stands before it.
constexpr std::string_view kSparseNames[] = {
    // IndexKernelUtils.cu: embedding, index_select along the first dimension.
    "24vectorized_gather_kernel",
    "21indexSelectSmallIndex",  // Indexing.cu
    "21indexSelectLargeIndex",
    "19indexFuncSmallIndex",  // index_add, index_copy, index_fill; SGD with sparse gradients
    "19indexFuncLargeIndex",
    "24indexing_backward_kernel",  // index_put with accumulation
    "33indexing_backward_kernel_stride_1",
    "37indexing_backward_kernel_small_stride",
    // IndexKernel.cu: index, index_put, index_copy, index_fill, take, put.
    "24index_elementwise_kernel",
    "34_scatter_gather_elementwise_kernel",   // ScatterGatherKernel.cu
    "33embedding_backward_feature_kernel",    // Embedding.cu
    "40EmbeddingBag_updateOutputKernel_sum",  // EmbeddingBag.cu
    "35EmbeddingBag_updateOutputKernel_max",
    "15sum_and_scatter",          // EmbeddingBackwardKernel.cu
    "23sparseElementwiseKernel",  // SparseCUDAApplyUtils.cuh: a dense tensor plus a sparse one
    "29sparseElementwiseKernelScalar",
};

}  // namespace

bool is_sparse(std::string_view function) noexcept {
  return std::ranges::any_of(kSparseNames, [&](std::string_view name) {
    return function.find(name) != std::string_view::npos;
  });
}

}  // namespace deepum::hooks
