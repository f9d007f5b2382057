// Scaled dot product attention: the memory-efficient kernels (mem_eff_attention/kernel_forward.h,
// kernel_backward.h) and FlashAttention-2.
#include "extents.hpp"
#include "families.hpp"

namespace deepum::simgpu {
namespace {

// What fused attention reaches of the peak rate, A100, FP16: the first algorithm 25 to 40 %, the
// second 50 to 73 % (FlashAttention-2, arXiv 2307.08691, abstract). The memory-efficient kernels
// are taken for the first, in FP32 too [?].
constexpr double kEfficientFraction = 0.33;
constexpr double kFlashFraction = 0.6;

struct Shape {
  double batches, heads, queries, keys, depth;
};

// A [batches, length, heads, depth] tensor, whatever the order of its dimensions; strides in
// elements. It is read.
struct Tensor {
  std::uint64_t batches, batch_stride, length, row_stride, heads, head_stride, depth;
};
void read(Touch& touch, const Pointer* p, const Tensor& t, std::uint64_t element) {
  touch.add_strided(p,
                    {{t.batches, t.batch_stride * element},
                     {t.length, t.row_stride * element},
                     {t.heads, t.head_stride * element}},
                    t.depth * element, true, false);
}

// products: matrix products of queries x keys x depth; two forward, five backward. A causal mask
// halves them.
void add_flops(Touch& touch, const Shape& s, double products, bool causal) {
  touch.flops(products * 2 * s.batches * s.heads * s.queries * s.keys * s.depth *
              (causal ? 0.5 : 1));
}

bool is_half(const Facts& f) { return f.named("_f16_") || f.named("_bf16_"); }

bool describe_efficient_forward(const Facts& f, Touch& t) {
  if (!f.named("fmha_cutlassF_") || f.size(0) < 240) return false;
  const auto u32 = [&](std::uint32_t at) -> std::uint64_t { return f.value<std::uint32_t>(0, at); };
  const auto u64 = [&](std::uint32_t at) { return f.value<std::uint64_t>(0, at); };
  const std::uint64_t e = is_half(f) ? 2 : 4, depth = u32(96), value_depth = u32(100),
                      queries = u32(104), keys = u32(108);
  const bool causal = f.value<std::uint8_t>(0, 116) != 0;
  const std::uint64_t heads = f.launch().grid[1], batches = f.launch().grid[2];
  const std::uint32_t start = f.launch().layout.parameters[0].offset;
  read(t, f.pointer_at(start), {batches, u64(160), queries, u32(120), heads, u32(140), depth}, e);
  read(t, f.pointer_at(start + 8), {batches, u64(168), keys, u32(124), heads, u32(144), depth}, e);
  read(t, f.pointer_at(start + 16),
       {batches, u64(176), keys, u32(128), heads, u32(148), value_depth}, e);
  if (u64(24) != 0) {
    read(t, f.pointer_at(start + 24), {batches, u64(184), queries, u32(132), heads, u64(152), keys},
         e);
  }
  const std::uint64_t output = batches * queries * heads * value_depth;
  if (u64(72) != u64(64)) t.both(f.pointer_at(start + 72), output * 4);
  t.write(f.pointer_at(start + 64), output * e);
  t.write(f.pointer_at(start + 80), batches * heads * ((queries + 31) / 32 * 32) * 4);
  add_flops(t,
            {double(batches), double(heads), double(queries), double(keys),
             double(depth + value_depth) / 2},
            2, causal);
  t.peak_fraction(kEfficientFraction);
  if (is_half(f)) t.use_matrix_units();
  return true;
}

bool describe_efficient_backward(const Facts& f, Touch& t) {
  if (!f.named("fmha_cutlassB_") || f.size(0) < 400) return false;
  const auto u32 = [&](std::uint32_t at) -> std::uint64_t { return f.value<std::uint32_t>(0, at); };
  const std::uint64_t e = is_half(f) ? 2 : 4;
  const std::uint64_t depth = u32(144), value_depth = u32(148), queries = u32(152), keys = u32(156),
                      heads = u32(160);
  const bool causal = f.value<std::uint8_t>(0, 164) != 0;
  const std::uint64_t batches = f.launch().grid[2];
  if (heads != f.launch().grid[1]) return false;
  const std::uint32_t start = f.launch().layout.parameters[0].offset;
  // Rows of the inputs are row_stride apart (several tensors may share a row); all heads lie within
  // a row, and where the stride has room for them, those of all batches.
  const auto rows = [&](std::uint32_t pointer, std::uint32_t stride, std::uint64_t length,
                        std::uint64_t width) {
    const auto row = f.value<std::uint64_t>(0, stride);
    const std::uint64_t dense = heads * width;
    const bool strided = row > dense && row < 4096 * dense,
               interleaved = strided && row >= batches * dense;
    const std::uint64_t count = interleaved ? length : batches * length,
                        last = interleaved ? batches * dense : dense;
    t.read(f.pointer_at(start + pointer), ((count - 1) * (strided ? row : dense) + last) * e);
  };
  rows(0, 168, queries, depth);
  rows(8, 176, keys, depth);
  rows(16, 184, keys, value_depth);
  t.read(f.pointer_at(start + 32), batches * heads * ((queries + 31) / 32 * 32) * 4);
  t.read(f.pointer_at(start + 40), batches * queries * heads * value_depth * e);
  t.read(f.pointer_at(start + 48), batches * queries * heads * value_depth * e);
  t.read(f.pointer_at(start + 56), batches * heads * queries * 4);
  t.write(f.pointer_at(start + 80), batches * queries * heads * depth * e);
  t.write(f.pointer_at(start + 88), batches * keys * heads * depth * e);
  t.write(f.pointer_at(start + 96), batches * keys * heads * value_depth * e);
  // Filled with zeros just before.
  if (const Pointer* const workspace = f.pointer_at(start + 112)) {
    const std::uint64_t known = Extents::of_process().bytes_at(workspace->address);
    t.both(workspace, known != 0
                          ? known
                          : batches * heads * (queries * depth + keys * (depth + value_depth)) * 4);
  }
  add_flops(t,
            {double(batches), double(heads), double(queries), double(keys),
             double(depth + value_depth) / 2},
            5, causal);
  t.peak_fraction(kEfficientFraction);
  if (is_half(f)) t.use_matrix_units();
  return true;
}

// flash.h: q, k, v; nine strides (int64); h, h_k, ratio; o at 112, lse at 160; b, seqlen_q,
// seqlen_k, seqlen_knew, d from 176.
bool describe_flash(const Facts& f, Touch& t) {
  const bool backward = f.named("flash_bwd");
  if ((!backward && !f.named("flash_fwd")) || f.size(0) < 200) return false;
  const auto u32 = [&](std::uint32_t at) -> std::uint64_t { return f.value<std::uint32_t>(0, at); };
  const std::uint64_t heads = u32(96), key_heads = u32(100), batches = u32(176), queries = u32(180),
                      keys = u32(184), depth = u32(192);
  if (heads == 0 || key_heads == 0 || batches == 0 || depth == 0 || depth > 512 || heads > 4096)
    return false;
  const std::uint64_t q_bytes = batches * queries * heads * depth * 2,
                      k_bytes = batches * keys * key_heads * depth * 2;
  const std::uint32_t start = f.launch().layout.parameters[0].offset;
  const auto u64 = [&](std::uint32_t at) { return f.value<std::uint64_t>(0, at); };
  read(t, f.pointer_at(start), {batches, u64(24), queries, u64(48), heads, u64(72), depth}, 2);
  read(t, f.pointer_at(start + 8), {batches, u64(32), keys, u64(56), key_heads, u64(80), depth}, 2);
  read(t, f.pointer_at(start + 16), {batches, u64(40), keys, u64(64), key_heads, u64(88), depth},
       2);
  t.add(f.pointer_at(start + 112), 0, q_bytes, backward, !backward);
  t.add(f.pointer_at(start + 160), 0, batches * heads * queries * 4, backward, !backward);
  if (backward) {  // gradients and accumulators, each as large as the queries or keys
    for (const Pointer& pointer : f.pointers()) {
      if (pointer.offset >= start + 200) t.both(&pointer, std::max(q_bytes, k_bytes));
    }
  }
  const bool main = f.named("fwd_kernel") || f.named("bwd_dq_dk_dv");
  if (main) {
    add_flops(t, {double(batches), double(heads), double(queries), double(keys), double(depth)},
              backward ? 5 : 2, false);
  }
  t.peak_fraction(kFlashFraction);
  t.use_matrix_units();
  return true;
}

}  // namespace

bool describe_attention(const Facts& facts, Touch& touch) {
  return describe_efficient_forward(facts, touch) || describe_efficient_backward(facts, touch) ||
         describe_flash(facts, touch);
}

}  // namespace deepum::simgpu
