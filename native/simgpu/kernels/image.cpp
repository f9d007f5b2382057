// Which code of an image runs on the simulated device, and its parameter layouts. Formats:
// fatbinary_section.h gives the wrapper; the rest was read off the bytes of nvcc 13.0's and
// PyTorch 2.12.1's images, with cuobjdump as the check.
#include "image.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "decompress.hpp"
#include "layouts.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::uint32_t kWrapper = 0x466243b1;
constexpr std::uint32_t kContainer = 0xba55ed50;
constexpr std::uint64_t kZstd = 0x8000, kLz4 = 0x2000, kExactArchitecture = 0x100000;

struct Code {
  bool ptx;
  int architecture;  // 10 * major + minor
  Bytes payload;
  std::uint64_t flags;
  std::uint64_t bytes;  // uncompressed
};

std::vector<Code> codes_of_container(const std::uint8_t* container) {
  const Bytes header(container, 16);
  const auto header_bytes = read_at<std::uint16_t>(header, 6);
  const Bytes all(container, header_bytes + read_at<std::uint64_t>(header, 8));
  std::vector<Code> codes;
  for (std::uint64_t at = header_bytes; at < all.size();) {
    const std::uint64_t entry_header = read_at<std::uint32_t>(all, at + 4),
                        padded = read_at<std::uint64_t>(all, at + 8);
    if (entry_header < 64) throw Malformed("fatbin entry header is too short");
    const auto kind = read_at<std::uint16_t>(all, at);
    const auto compressed = read_at<std::uint32_t>(all, at + 0x10);
    const auto flags = read_at<std::uint64_t>(all, at + 0x28);
    const auto unpacked = read_at<std::uint64_t>(all, at + 0x38);
    const bool packed = (flags & (kZstd | kLz4)) != 0 && unpacked != 0;
    const std::uint64_t size = packed && compressed != 0 ? compressed : padded;
    if (kind == 1 || kind == 2) {
      codes.push_back({kind == 1, static_cast<int>(read_at<std::uint32_t>(all, at + 0x1c)),
                       slice(all, at + entry_header, size),
                       packed ? flags : flags & ~(kZstd | kLz4), unpacked});
    }
    at += entry_header + padded;
  }
  return codes;
}

// Smaller is better: cubins of the device's major version, newest first; PTX, which the driver
// would compile; cubins of older major versions (no real driver takes these; their parameters are
// the same but for over-aligned structs). -1: does not run.
int rank(const Code& code, int device) {
  const bool exact = (code.flags & kExactArchitecture) != 0;
  if (code.architecture > device || (exact && code.architecture != device)) return -1;
  if (code.ptx) return 1000 + device - code.architecture;
  if (code.architecture / 10 == device / 10) return device - code.architecture;
  return 2000 + device - code.architecture;
}

class CodeImage final : public Image {
 public:
  CodeImage(const std::vector<Code>& codes, int device) {
    std::multimap<int, Code> sorted;
    for (const Code& code : codes) {
      architectures_.insert(code.architecture);
      if (const int place = rank(code, device); place >= 0) sorted.emplace(place, code);
    }
    for (const auto& [place, code] : sorted) codes_.push_back(code);
    device_ = device;
  }

  std::optional<ParameterLayout> layout(std::string_view kernel, std::string* why) override {
    const std::lock_guard lock(mutex_);
    if (const Kernel* const known = find(kernel)) return known->layout;
    *why = problem_.empty() ? "no kernel " + std::string(kernel) + " for sm_" +
                                  std::to_string(device_) + " in the image"
                            : problem_;
    if (problem_.empty() && codes_.empty()) {
      *why += "; it has";
      for (const int architecture : architectures_) *why += " sm_" + std::to_string(architecture);
    }
    return std::nullopt;
  }

  std::optional<Compiled> compiled_for(std::string_view kernel) override {
    const std::lock_guard lock(mutex_);
    const Kernel* const known = find(kernel);
    return known != nullptr ? std::optional(known->compiled) : std::nullopt;
  }

  std::vector<std::string> kernels() override {
    const std::lock_guard lock(mutex_);
    while (read_next({})) {
    }
    std::vector<std::string> names;
    names.reserve(kernels_.size());
    for (const auto& [name, kernel] : kernels_) names.push_back(name);
    return names;
  }

 private:
  struct Kernel {
    ParameterLayout layout;
    Compiled compiled;
  };

  const Kernel* find(std::string_view kernel) {
    for (;;) {
      if (const auto known = kernels_.find(kernel); known != kernels_.end()) return &known->second;
      if (!read_next(kernel)) return nullptr;
    }
  }

  // Reads the next best code; false when all were read. Better code read before keeps its kernels.
  // kernel: the one that is looked for.
  bool read_next(std::string_view kernel) {
    if (next_ == codes_.size()) return false;
    const Code& code = codes_[next_++];
    try {
      std::vector<std::uint8_t> unpacked;
      Bytes bytes = code.payload;
      if ((code.flags & kZstd) != 0) unpacked = decompress_zstd(bytes, code.bytes);
      if ((code.flags & kLz4) != 0) unpacked = decompress_lz4_block(bytes, code.bytes);
      if (!unpacked.empty()) bytes = unpacked;
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      Layouts layouts =
          code.ptx ? layouts_of_ptx(text.substr(0, text.find('\0'))) : layouts_of_cubin(bytes);
      // PTX is compiled for the device when it is loaded. An image of one piece of code has no
      // table that says what it is for.
      const int made_for = code.architecture != 0 ? code.architecture : device_;
      for (auto& [name, layout] : layouts) {
        kernels_.try_emplace(name,
                             Kernel{std::move(layout), {code.ptx ? device_ : made_for, made_for}});
      }
    } catch (const std::exception& error) {
      problem_ = "code for sm_" + std::to_string(code.architecture) + " not readable" +
                 (kernel.empty() ? "" : " (looking for " + std::string(kernel) + ")") + ": " +
                 error.what();
    }
    return true;
  }

  std::mutex mutex_;
  std::vector<Code> codes_;  // best first
  std::size_t next_ = 0;
  std::set<int> architectures_;
  int device_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::string problem_;
};

bool looks_like_ptx(const char* text) {
  const std::string_view start(text, strnlen(text, 4096));
  return start.find(".version") != std::string_view::npos || start.starts_with("//");
}

std::vector<Code> codes_of(const void* image) {
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  const Bytes first(bytes, 16);
  const auto magic = read_at<std::uint32_t>(first, 0);
  if (magic == kWrapper) {
    const auto data = read_at<std::uint64_t>(first, 8);
    bytes = reinterpret_cast<const std::uint8_t*>(data);
    if (bytes == nullptr || read_at<std::uint32_t>(Bytes(bytes, 16), 0) != kContainer)
      throw Malformed("wrapper without a fatbin");
    return codes_of_container(bytes);
  }
  if (magic == kContainer) return codes_of_container(bytes);
  if (std::memcmp(bytes, "\177ELF", 4) == 0) {
    constexpr std::uint16_t kCudaMachine = 190;  // EM_CUDA
    if (read_at<std::uint16_t>(Bytes(bytes, 64), 18) != kCudaMachine)
      throw Malformed("an ELF file, but not of device code");
    return {{false, 0, Bytes(bytes, elf_image_bytes(bytes)), 0, 0}};
  }
  const auto* text = static_cast<const char*>(image);
  if (looks_like_ptx(text)) return {{true, 0, Bytes(bytes, std::strlen(text)), 0, 0}};
  throw Malformed("neither a fatbin, a cubin nor PTX");
}

}  // namespace

std::unique_ptr<Image> open_image(const void* image, int major, int minor, std::string* why) {
  try {
    return std::make_unique<CodeImage>(codes_of(image), 10 * major + minor);
  } catch (const std::exception& error) {
    *why = error.what();
    return nullptr;
  }
}

}  // namespace deepum::simgpu
