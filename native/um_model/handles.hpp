// What calls name: hosts, streams, events, words and ranges of addresses.
#pragma once

#include <cstdint>

namespace deepum::um_model {

// 0: the program's clock; 1: the server's; others: one for each helper and each thread beside the
// program.
using Host = std::uint32_t;
using Stream = std::uint32_t;
using Event = std::uint32_t;
using Word = std::uint32_t;
inline constexpr Host kProgram = 0;
inline constexpr Host kServer = 1;
inline constexpr int kCpu = -1;
inline constexpr std::uint64_t kBlockBytes = 2ull << 20;

struct Range {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace deepum::um_model
