// Kernel families of PyTorch 2.4 to 2.15 (source: its ATen/native/cuda). Each answers whether it
// recognised the launch; only then has it touched.
#pragma once

#include "launch_facts.hpp"

namespace deepum::simgpu {

bool describe_elementwise(const Facts& facts, Touch& touch);
bool describe_reduction(const Facts& facts, Touch& touch);
// softmax, layer norm, losses, dropout, cat.
bool describe_rows(const Facts& facts, Touch& touch);
bool describe_gather(const Facts& facts, Touch& touch);  // indexing, embeddings
bool describe_multi_tensor(const Facts& facts, Touch& touch);
// im2col, depthwise convolution, pooling, upsampling.
bool describe_windows(const Facts& facts, Touch& touch);
bool describe_normalisation(const Facts& facts, Touch& touch);  // batch norm, group norm
bool describe_random(const Facts& facts, Touch& touch);
// Inductor's kernels: sizes only. What they write is not known.
bool describe_triton(const Facts& facts, Touch& touch);
bool describe_attention(const Facts& facts, Touch& touch);

}  // namespace deepum::simgpu
