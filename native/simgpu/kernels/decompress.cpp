#include "decompress.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace deepum::simgpu {
namespace {

constexpr std::uint64_t kMost = 1ull << 30;  // the largest cubin of PyTorch 2.12.1 has 100 MB

// The system's decoder, found at first use: nothing to build against, and fatbins without zstd need
// none. zstd.h is stable since 1.0.
struct Zstd {
  std::size_t (*decompress)(void*, std::size_t, const void*, std::size_t) = nullptr;
  unsigned (*is_error)(std::size_t) = nullptr;

  Zstd() {
    void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr,
                   "deepum-sim: error: libzstd.so.1 is missing: %s; apt-get install libzstd1\n",
                   dlerror());
      return;
    }
    decompress = reinterpret_cast<decltype(decompress)>(dlsym(library, "ZSTD_decompress"));
    is_error = reinterpret_cast<decltype(is_error)>(dlsym(library, "ZSTD_isError"));
  }
};

}  // namespace

std::vector<std::uint8_t> decompress_zstd(Bytes frame, std::uint64_t size) {
  static const Zstd zstd;
  if (zstd.decompress == nullptr || zstd.is_error == nullptr)
    throw Malformed("compressed with zstd, and libzstd.so.1 is missing");
  if (size > kMost) throw Malformed("implausible uncompressed size");
  std::vector<std::uint8_t> out(size);
  const std::size_t bytes = zstd.decompress(out.data(), out.size(), frame.data(), frame.size());
  if (zstd.is_error(bytes) != 0 || bytes != size) throw Malformed("zstd frame is corrupt");
  return out;
}

// lz4_Block_format.md of github.com/lz4/lz4.
std::vector<std::uint8_t> decompress_lz4_block(Bytes block, std::uint64_t size) {
  if (size > kMost) throw Malformed("implausible uncompressed size");
  std::vector<std::uint8_t> out;
  out.reserve(size);
  std::size_t at = 0;
  const auto length = [&](std::size_t nibble) {
    if (nibble < 15) return nibble;
    for (;;) {
      const auto more = read_at<std::uint8_t>(block, at++);
      nibble += more;
      if (more != 255) return nibble;
    }
  };
  while (at < block.size() && out.size() < size) {
    const auto token = read_at<std::uint8_t>(block, at++);
    const std::size_t literals = length(token >> 4);
    const Bytes run = slice(block, at, literals);
    if (literals > size - out.size()) throw Malformed("LZ4 block is corrupt");
    out.insert(out.end(), run.begin(), run.end());
    at += literals;
    if (at >= block.size() || out.size() == size) break;  // the last sequence has literals only
    const std::size_t distance = read_at<std::uint16_t>(block, at);
    at += 2;
    const std::size_t match = length(token & 15) + 4;
    if (distance == 0 || distance > out.size() || match > size - out.size())
      throw Malformed("LZ4 block is corrupt");
    // May overlap itself.
    for (std::size_t i = 0; i < match; ++i) out.push_back(out[out.size() - distance]);
  }
  if (out.size() != size) throw Malformed("LZ4 block is corrupt");
  return out;
}

}  // namespace deepum::simgpu
