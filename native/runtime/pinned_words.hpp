// Words in host memory that streams wait for and write.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace deepum::runtime {

struct PinnedWords {
  std::uint64_t* host = nullptr;
  CUdeviceptr device = 0;
};

// The driver has the calls, and those with which a stream waits for a word.
bool can_pin_words() noexcept;
// So many bytes, all 0, for good: the driver keeps its pages. In shared memory, so that a fork
// leaves these where they are. With a context current. False: the driver refuses, or there is no
// memory.
bool pin_words(std::size_t bytes, PinnedWords* made) noexcept;

}  // namespace deepum::runtime
