// Sizes and other values as people write them: what deepum/configuration/setting.py understands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepum::runtime {

// Without the white space around it; not terminated.
void trim(const char** text, std::size_t* length) noexcept;
// Whether a text is `word`, which is in small letters; the text's may be large.
bool same_word(const char* text, std::size_t length, const char* word) noexcept;
// The digits at *at, which then points behind them. False: there are none, or too many.
bool read_digits(const char** at, const char* end, std::uint64_t* value) noexcept;

// `8GiB`, `8G`, `8gb`, `1.5GiB`, `4096`: bytes, powers of 1024. False: no size below 8 EiB.
bool parse_size(const char* text, std::size_t length, std::uint64_t* bytes) noexcept;

// The shortest exact text that parse_size understands, such as 20MiB.
struct SizeText {
  char text[32];
};
SizeText format_size(std::uint64_t bytes) noexcept;

}  // namespace deepum::runtime
