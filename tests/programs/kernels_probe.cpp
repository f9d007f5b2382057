// The reader of device code and the truth of launches, for ctypes.
#include <cstring>

#include "image.hpp"
#include "truth.hpp"

using namespace deepum::simgpu;
namespace um_model = deepum::um_model;

namespace {
void put(char* to, const std::string& text) { std::strncpy(to, text.c_str(), 511); }
}  // namespace

extern "C" {

void* probe_open(const void* image, int major, int minor, char* why) {
  std::string reason;
  Image* const opened = open_image(image, major, minor, &reason).release();
  put(why, reason);
  return opened;
}

void probe_close(void* image) { delete static_cast<Image*>(image); }

// Offsets and sizes in turn; answers the number of parameters, -1 where there is no layout.
int probe_layout(void* image, const char* kernel, unsigned* out, int most, unsigned* bytes,
                 char* why) {
  std::string reason;
  const auto layout = static_cast<Image*>(image)->layout(kernel, &reason);
  put(why, reason);
  if (!layout) return -1;
  *bytes = layout->bytes;
  int count = 0;
  for (const Parameter& parameter : layout->parameters) {
    if (count < most) out[2 * count] = parameter.offset, out[2 * count + 1] = parameter.size;
    ++count;
  }
  return count;
}

// 1000 * the architecture of its machine code + that of the PTX behind it; -1 where there is no
// such kernel.
int probe_compiled_for(void* image, const char* kernel) {
  const auto compiled = static_cast<Image*>(image)->compiled_for(kernel);
  return compiled ? 1000 * compiled->binary + compiled->ptx : -1;
}

int probe_kernels(void* image) {
  return static_cast<int>(static_cast<Image*>(image)->kernels().size());
}

// layout: offsets and sizes in turn. allocations: address, bytes. out: address, bytes, 1 read + 2
// write.
int probe_truth(const char* kernel, const unsigned* layout, int parameters, unsigned bytes,
                const void* values, const unsigned* shape, unsigned long long ordinal,
                const unsigned long long* allocations, int count, unsigned long long* out, int most,
                double* flops) {
  ParameterLayout made{{}, bytes};
  for (int i = 0; i < parameters; ++i)
    made.parameters.push_back({layout[2 * i], layout[2 * i + 1]});
  const LaunchView launch{kernel,
                          made,
                          static_cast<const std::uint8_t*>(values),
                          {shape[0], shape[1], shape[2]},
                          {shape[3], shape[4], shape[5]},
                          ordinal};
  const auto find = [&](std::uint64_t address) -> std::optional<um_model::Range> {
    for (int i = 0; i < count; ++i) {
      if (address >= allocations[2 * i] && address - allocations[2 * i] < allocations[2 * i + 1])
        return um_model::Range{allocations[2 * i], allocations[2 * i + 1]};
    }
    return std::nullopt;
  };
  const um_model::Kernel truth = describe_launch(launch, find);
  *flops = truth.flops;
  int n = 0;
  for (const um_model::Access& access : truth.accesses) {
    if (n < most) {
      out[3 * n] = access.range.address;
      out[3 * n + 1] = access.range.bytes;
      out[3 * n + 2] = (access.read ? 1 : 0) + (access.write ? 2 : 0);
    }
    ++n;
  }
  return n;
}
}
