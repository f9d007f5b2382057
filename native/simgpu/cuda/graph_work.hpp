// What the structures of the graph calls stand for, as work.
#pragma once

#include "operation.hpp"

namespace deepum::simgpu {

// CUDA_ERROR_INVALID_VALUE for parameters that make no sense, else what making the work answers;
// CUDA_ERROR_NOT_SUPPORTED, said once, for what is not simulated.
CUresult work_from(State& state, const CUDA_KERNEL_NODE_PARAMS_v1& p, Work& out);
CUresult work_from(State& state, const CUDA_KERNEL_NODE_PARAMS_v2& p, Work& out);
CUresult work_from(State& state, const CUDA_MEMCPY3D& p, Work& out);
CUresult work_from(State& state, const CUDA_MEMSET_NODE_PARAMS& p, Work& out);
CUresult work_from(State& state, const CUDA_HOST_NODE_PARAMS& p, Work& out);
CUresult work_from(State& state, const CUgraphNodeParams& p, Work& out);
// A copy of the graph, which the node will own.
CUresult work_from(State& state, CUgraph child, Work& out);

}  // namespace deepum::simgpu
