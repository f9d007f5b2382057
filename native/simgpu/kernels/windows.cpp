// Kernels whose operands are planes of images: im2col and col2im, depthwise convolution, pooling,
// upsampling. Parameters as in the sources named with each.
#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

std::uint64_t element_of(const Facts& f, std::string_view kernel) {
  const std::vector<std::uint64_t> types = template_type_bytes(f.kernel(), kernel);
  return types.empty() ? f.element_bytes() : types[0];
}

// The planes (samples times channels) that `elements` make up.
std::uint64_t planes_of(std::uint64_t elements, std::uint64_t height, std::uint64_t width) {
  return height == 0 || width == 0 ? 0 : elements / height / width;
}

// im2col.cuh: threads, source, height, width, kernel (2), padding (2), stride (2), dilation (2),
// output height, output width, result.
bool describe_columns(const Facts& f, Touch& t) {
  const bool gather = f.named("im2col_kernel");
  if ((!gather && !f.named("13col2im_kernel")) || f.parameters() != 15) return false;
  const std::uint64_t e = element_of(f, gather ? "im2col_kernel" : "col2im_kernel");
  const std::uint64_t image = f.integer(2) * f.integer(3), taps = f.integer(4) * f.integer(5),
                      out = f.integer(12) * f.integer(13);
  // One for each output of a channel; col2im: one for each pixel.
  const std::uint64_t threads = f.integer(0);
  const std::uint64_t channels = gather ? planes_of(threads, f.integer(12), f.integer(13))
                                        : planes_of(threads, f.integer(2), f.integer(3));
  t.read(f.pointer(1), channels * (gather ? image : taps * out) * e);
  t.write(f.pointer(14), channels * (gather ? taps * out : image) * e);
  if (!gather) t.flops(static_cast<double>(channels * taps * out));
  return true;
}

// im2col.cuh: col2im_batched_kernel(threads, columns, stride of a sample, samples, height, width,
// kernel .. dilation (8), output height and width, image, stride of a sample).
bool describe_batched_columns(const Facts& f, Touch& t) {
  if (!f.named("col2im_batched_kernel") || f.parameters() != 18) return false;
  const std::uint64_t e = element_of(f, "col2im_batched_kernel"), samples = f.integer(3);
  t.read(f.pointer(1), samples * f.integer(2) * e);
  t.write(f.pointer(16), samples * f.integer(17) * e);
  t.flops(static_cast<double>(samples * f.integer(2)));
  return true;
}

// A tensor of four dimensions in an accessor. False: the parameter is none.
bool touch_accessor(const Facts& f, Touch& t, std::size_t parameter, std::uint32_t dims,
                    std::uint64_t e, bool read, bool write) {
  const PackedAccessor accessor(f, parameter, dims);
  if (!accessor.valid()) return false;
  t.add_strided(accessor.data(), accessor.dimensions(e), e, read, write);
  return true;
}

// DepthwiseConv2d.cu. forward: input, output, weight, bias, has a bias, ...; backward: gradient of
// the output, of the input, weight, ...; weight: gradient of the output, input, gradient of the
// weight, ...
bool describe_depthwise(const Facts& f, Touch& t) {
  const bool forward = f.named("conv_depthwise2d_forward_kernel"),
             weight = f.named("conv_depthwise2d_grad_weight_kernel");
  if (!forward && !weight && !f.named("conv_depthwise2d_backward_kernel")) return false;
  const PackedAccessor first(f, 0, 4), second(f, 1, 4), third(f, 2, 4);
  if (!first.valid() || !second.valid() || !third.valid()) return false;
  const std::uint64_t e = element_of(f, f.named("_kernel_generic") ? "_kernel_generic" : "_kernel");
  touch_accessor(f, t, 0, 4, e, true, false);
  touch_accessor(f, t, 1, 4, e, weight, !weight);
  touch_accessor(f, t, 2, 4, e, !weight, weight);
  if (forward) touch_accessor(f, t, 3, 1, e, true, false);
  const PackedAccessor& kernel = third;
  const std::uint64_t outputs = forward ? second.elements() : first.elements();
  t.flops(2.0 * static_cast<double>(outputs * kernel.size(2) * kernel.size(3)));
  return true;
}

// DilatedMaxPool2d.cu, of contiguous planes: forward threads, input, channels, height, width,
// output height and width, kernel (2), stride (2), padding (2), dilation (2), output, indices;
// backward gradient, indices, samples, channels and the same, result.
bool describe_max_pool(const Facts& f, Touch& t) {
  if (f.named("max_pool_forward_nchw") && f.parameters() == 17) {
    const std::uint64_t e = element_of(f, "max_pool_forward_nchw"), out = f.integer(0);
    t.read(f.pointer(1),
           planes_of(out, f.integer(5), f.integer(6)) * f.integer(3) * f.integer(4) * e);
    t.write(f.pointer(15), out * e);
    t.write(f.pointer(16), out * 8);
    t.flops(static_cast<double>(out * f.integer(7) * f.integer(8)));
    return true;
  }
  if (f.named("max_pool_backward_nchw") && f.parameters() == 17) {
    const std::uint64_t e = element_of(f, "max_pool_backward_nchw"),
                        planes = f.integer(2) * f.integer(3);
    const std::uint64_t out = planes * f.integer(6) * f.integer(7),
                        in = planes * f.integer(4) * f.integer(5);
    t.read(f.pointer(0), out * e);
    t.read(f.pointer(1), out * 8);
    t.write(f.pointer(16), in * e);
    t.flops(static_cast<double>(out));
    return true;
  }
  // Channels last: forward input, samples, channels, height, width, output height and width, ...,
  // output, indices; backward gradient, indices, samples, channels and the same, ..., result.
  const bool forward = f.named("max_pool_forward_nhwc");
  if ((!forward && !f.named("max_pool_backward_nhwc")) || f.parameters() < 16) return false;
  const std::size_t at = forward ? 1 : 2, end = f.parameters();
  const std::uint64_t e = element_of(f, "_nhwc"), planes = f.integer(at) * f.integer(at + 1);
  const std::uint64_t in = planes * f.integer(at + 2) * f.integer(at + 3),
                      out = planes * f.integer(at + 4) * f.integer(at + 5);
  if (forward) {
    t.read(f.pointer(0), in * e);
    t.write(f.pointer(end - 2), out * e);
    t.write(f.pointer(end - 1), out * 8);
    t.flops(static_cast<double>(out * f.integer(at + 6) * f.integer(at + 7)));
  } else {
    t.read(f.pointer(0), out * e);
    t.read(f.pointer(1), out * 8);
    t.write(f.pointer(end - 1), in * e);
    t.flops(static_cast<double>(out));
  }
  return true;
}

// AveragePool2d.cu, of contiguous planes and with channels last: threads, source, channels, height,
// width, output height and width, kernel (2), stride (2), padding (2), result.
bool describe_average_pool(const Facts& f, Touch& t) {
  const bool backward = f.named("avg_pool2d_backward_out_cuda_frame");
  if ((!backward && !f.named("avg_pool2d_out_cuda_frame")) || f.pointer(13) == nullptr)
    return false;
  const std::uint64_t e = element_of(f, f.named("_nhwc") ? "cuda_frame_nhwc" : "cuda_frame"),
                      threads = f.integer(0);
  const std::uint64_t in = f.integer(3) * f.integer(4), out = f.integer(5) * f.integer(6);
  if (in == 0 || out == 0) return false;
  const std::uint64_t planes = threads / (backward ? in : out);
  t.read(f.pointer(1), planes * (backward ? out : in) * e);
  t.write(f.pointer(13), threads * e);
  t.flops(static_cast<double>(planes * out * f.integer(7) * f.integer(8)));
  return true;
}

// AdaptiveAveragePooling.cu, AdaptiveMaxPooling2d.cu: a column of blocks for each plane. average:
// input, output, input height and width, output height and width; its gradient: result, gradient
// and the same; maximum has indices behind these two, its gradients are added to what is there.
// With channels last: samples and channels are parameters.
bool describe_adaptive_pool(const Facts& f, Touch& t) {
  struct Form {
    std::string_view name;
    bool backward, indices, last, adds;
  };
  static constexpr Form kForms[] = {{"adaptive_average_pool_nhwc", false, false, true, false},
                                    {"adaptive_average_gradinput_nhwc", true, false, true, false},
                                    {"atomic_adaptive_average_gradinput", true, false, false, true},
                                    {"adaptive_average_gradinput", true, false, false, false},
                                    {"adaptive_average_pool", false, false, false, false},
                                    {"atomicadaptivemaxgradinput", true, true, false, true},
                                    {"adaptivemaxgradinput", true, true, false, true},
                                    {"adaptivemaxpool", false, true, false, false}};
  for (const Form& form : kForms) {
    if (!f.named(form.name)) continue;
    const std::size_t at = (form.indices ? 3u : 2u) + (form.last ? 2u : 0u);
    const std::uint64_t e = element_of(f, form.name),
                        planes = form.last ? f.integer(2) * f.integer(3) : f.launch().grid[0];
    const std::uint64_t in = planes * f.integer(at) * f.integer(at + 1),
                        out = planes * f.integer(at + 2) * f.integer(at + 3);
    t.read(f.pointer(form.backward ? 1 : 0), (form.backward ? out : in) * e);
    if (form.indices) t.add(f.pointer(2), 0, out * 8, form.backward, !form.backward);
    t.add(f.pointer(form.backward ? 0 : 1), 0, (form.backward ? in : out) * e, form.adds, true);
    t.flops(static_cast<double>(in));
    return true;
  }
  return false;
}

// UpSampleNearest2d.cu: forward input, output, planes, height, width, output height and width; with
// channels last channels, ..., two scales, elements of the output; backward gradient, samples,
// channels, height and width of the gradient, of the result, result.
bool describe_upsampling(const Facts& f, Touch& t) {
  if (f.named("upsample_nearest2d_out_frame")) {
    const std::uint64_t e = element_of(f, "upsample_nearest2d_out_frame"), planes = f.integer(2);
    t.read(f.pointer(0), planes * f.integer(3) * f.integer(4) * e);
    t.write(f.pointer(1), planes * f.integer(5) * f.integer(6) * e);
    return true;
  }
  if (f.named("upsample_nearest2d_nhwc_out_frame")) {
    const std::uint64_t e = element_of(f, "upsample_nearest2d_nhwc_out_frame"), out = f.integer(9);
    t.read(f.pointer(0),
           planes_of(out, f.integer(5), f.integer(6)) * f.integer(3) * f.integer(4) * e);
    t.write(f.pointer(1), out * e);
    return true;
  }
  if (f.named("upsample_nearest2d_backward_out_frame")) {
    const std::uint64_t e = element_of(f, "upsample_nearest2d_backward_out_frame"),
                        planes = f.integer(1) * f.integer(2);
    t.read(f.pointer(0), planes * f.integer(3) * f.integer(4) * e);
    t.write(f.pointer(7), planes * f.integer(5) * f.integer(6) * e);
    t.flops(static_cast<double>(planes * f.integer(3) * f.integer(4)));
    return true;
  }
  // UpSampleBilinear2d.cu, UpSampleBicubic2d.cu: pixels, two scales, align_corners, input, output;
  // backward: the gradient, the result, which is added to.
  const bool forward =
      f.named("upsample_bilinear2d_out_frame") || f.named("upsample_bicubic2d_out_frame");
  if (!forward || !PackedAccessor(f, 4, 4).valid() || !PackedAccessor(f, 5, 4).valid())
    return false;
  const std::uint64_t e = element_of(f, "_out_frame"), taps = f.named("bicubic") ? 16 : 4;
  touch_accessor(f, t, 4, 4, e, true, false);
  touch_accessor(f, t, 5, 4, e, false, true);
  t.flops(2.0 * static_cast<double>(taps * PackedAccessor(f, 5, 4).elements()));
  return true;
}

}  // namespace

bool describe_windows(const Facts& facts, Touch& touch) {
  return describe_columns(facts, touch) || describe_batched_columns(facts, touch) ||
         describe_depthwise(facts, touch) || describe_max_pool(facts, touch) ||
         describe_average_pool(facts, touch) || describe_adaptive_pool(facts, touch) ||
         describe_upsampling(facts, touch);
}

}  // namespace deepum::simgpu
