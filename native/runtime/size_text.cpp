#include "size_text.hpp"

#include <cctype>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace deepum::runtime {

bool same_word(const char* text, std::size_t length, const char* word) noexcept {
  if (std::strlen(word) != length) {
    return false;
  }
  for (std::size_t i = 0; i < length; ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != word[i]) {
      return false;
    }
  }
  return true;
}

void trim(const char** text, std::size_t* length) noexcept {
  while (*length && std::isspace(static_cast<unsigned char>(**text))) {
    ++*text, --*length;
  }
  while (*length && std::isspace(static_cast<unsigned char>((*text)[*length - 1]))) {
    --*length;
  }
}

bool read_digits(const char** at, const char* end, std::uint64_t* value) noexcept {
  const char* start = *at;
  for (*value = 0; *at < end && std::isdigit(static_cast<unsigned char>(**at)); ++*at) {
    if (__builtin_mul_overflow(*value, 10u, value) ||
        __builtin_add_overflow(*value, static_cast<unsigned>(**at - '0'), value)) {
      return false;
    }
  }
  return *at > start;
}

bool parse_size(const char* text, std::size_t length, std::uint64_t* bytes) noexcept {
  trim(&text, &length);
  const char* at = text;
  const char* end = text + length;
  std::uint64_t whole;
  if (!read_digits(&at, end, &whole)) {
    return false;
  }
  double fraction = 0;
  if (at < end && *at == '.') {
    double place = 0.1;
    const char* start = ++at;
    for (; at < end && std::isdigit(static_cast<unsigned char>(*at)); ++at, place /= 10) {
      fraction += place * (*at - '0');
    }
    if (at == start) {
      return false;
    }
  }
  while (at < end && std::isspace(static_cast<unsigned char>(*at))) {
    ++at;
  }
  unsigned power = 0;
  if (at < end && !same_word(at, static_cast<std::size_t>(end - at), "b")) {
    const char* found = std::strchr("kmgt", std::tolower(static_cast<unsigned char>(*at++)));
    if (!found) {
      return false;
    }
    power = static_cast<unsigned>(found - "kmgt") + 1;
    const auto rest = static_cast<std::size_t>(end - at);
    if (rest != 0 && !same_word(at, rest, "b") && !same_word(at, rest, "ib")) {
      return false;
    }
  }
  const double unit = std::ldexp(1.0, static_cast<int>(10 * power));
  if ((static_cast<double>(whole) + fraction) * unit >= 9223372036854775808.0) {
    return false;
  }
  *bytes = (whole << (10 * power)) + static_cast<std::uint64_t>(fraction * unit);
  return true;
}

SizeText format_size(std::uint64_t bytes) noexcept {
  SizeText made{};
  static constexpr const char* kUnits[] = {"TiB", "GiB", "MiB", "KiB"};
  unsigned shift = 40;
  for (const char* unit : kUnits) {
    if (bytes && (bytes & ((1ull << shift) - 1)) == 0) {
      std::snprintf(made.text, sizeof made.text, "%" PRIu64 "%s", bytes >> shift, unit);
      return made;
    }
    shift -= 10;
  }
  std::snprintf(made.text, sizeof made.text, "%" PRIu64, bytes);
  return made;
}

}  // namespace deepum::runtime
