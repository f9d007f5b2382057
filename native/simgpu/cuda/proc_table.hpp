// The generated table behind cuGetProcAddress, sorted by base name, then version, then variant.
#pragma once

#include <cstddef>

namespace deepum::simgpu {

struct ProcAddress {
  const char* base;
  int version;      // CUDA version from which on this symbol is what the base name means
  bool per_thread;  // the variant whose default stream is the calling thread's own
  void* pointer;
};

extern const ProcAddress kProcAddresses[];
extern const std::size_t kProcAddressCount;

}  // namespace deepum::simgpu
