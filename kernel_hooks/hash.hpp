// Hashes that are equal in every run: no addresses, no seeds.
#pragma once

#include <cstdint>
#include <string_view>

namespace deepum::hooks {

// Folded 128-bit multiplication (as in wyhash): full avalanche in about four cycles.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product =
      static_cast<unsigned __int128>(a ^ 0xa0761d6478bd642full) * (b ^ 0xe7037ed1a0b428dbull);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t hash_text(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return mix(hash, text.size());
}

}  // namespace deepum::hooks
