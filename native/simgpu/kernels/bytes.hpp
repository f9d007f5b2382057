// Bounds-checked reading of little-endian bytes that others wrote.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace deepum::simgpu {

using Bytes = std::span<const std::uint8_t>;

// Thrown on a malformed image; caught in image.cpp, never leaves this folder.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename T>
T read_at(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) throw Malformed("truncated");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline Bytes slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) throw Malformed("truncated");
  return bytes.subspan(offset, size);
}

}  // namespace deepum::simgpu
