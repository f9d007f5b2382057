// cuda.h with every version of every function under its own name: no macro turns cuMemAlloc into
// cuMemAlloc_v2 in this folder.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "undefine.inc"
