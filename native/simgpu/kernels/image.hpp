// Device code images: fatbin wrappers and containers, cubins, PTX. Opened lazily; a kernel's
// parameters are read at its first launch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deepum::simgpu {

struct Parameter {
  std::uint32_t offset;
  std::uint32_t size;
};

struct ParameterLayout {
  std::vector<Parameter> parameters;  // by ordinal
  std::uint32_t bytes;                // of the parameter buffer
};

// What the code of a kernel was compiled for, 10 * major + minor: its machine code, and the PTX
// that this was made from.
struct Compiled {
  int binary, ptx;
};

class Image {
 public:
  virtual ~Image() = default;
  // nullopt and *why set: no such kernel, or its layout cannot be parsed (never guessed).
  // Thread-safe.
  virtual std::optional<ParameterLayout> layout(std::string_view kernel, std::string* why) = 0;
  // Of the code that runs on the device, which may be older than it; nullopt as above.
  virtual std::optional<Compiled> compiled_for(std::string_view kernel) = 0;
  virtual std::vector<std::string> kernels() = 0;  // all names; may be slow
};

// image: what cuModuleLoadData / cuLibraryLoadData accept, except host modules. major, minor: the
// simulated device's architecture. The memory must stay readable. nullptr and *why set when it is
// none of the known formats.
std::unique_ptr<Image> open_image(const void* image, int major, int minor, std::string* why);

}  // namespace deepum::simgpu
