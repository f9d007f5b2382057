// Jumps that are written over the entries of functions.
#pragma once

#include <cstddef>
#include <vector>

namespace deepum::simgpu::cudart {

// As much of a function as a jump takes the place of.
#if defined(__x86_64__)
constexpr std::size_t kJumpBytes = 5;  // jmp, 32 bits of offset
#else
constexpr std::size_t kJumpBytes = 4;  // b, 26 bits of offset
#endif

struct Jump {
  std::byte* entry;
  const void* to;
};
// Writes all of them, or none: null, or what failed. What they overwrite lies in code of one
// object, is code again afterwards, and must not be running. Each goes by a second jump, in memory
// near the object that is taken for them.
const char* write_jumps(const std::vector<Jump>& jumps) noexcept;

}  // namespace deepum::simgpu::cudart
