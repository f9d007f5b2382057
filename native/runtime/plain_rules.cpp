#include "plain_rules.hpp"

#include <cctype>
#include <cstring>

#include "size_text.hpp"

namespace deepum::runtime {
namespace {

// As in deepum/configuration/plain_rules.py, which says who they are.
constexpr const char* kSharing[] = {"libnccl", "libnvshmem",  "libucp",    "libuct",   "libucs",
                                    "libmpi",  "libopen-pal", "libfabric", "libcufile"};

bool of_a_name(char letter) noexcept {
  return std::isalnum(static_cast<unsigned char>(letter)) || std::strchr("_.+-", letter) != nullptr;
}

// `SIZE`, `SIZE-SIZE`, `SIZE-`, `-SIZE`.
bool parse_sizes(const char* text, std::size_t length, PlainRule* rule) noexcept {
  const auto* dash = static_cast<const char*>(std::memchr(text, '-', length));
  if (!dash) {
    const bool good = parse_size(text, length, &rule->least);
    rule->most = rule->least;
    return good;
  }
  const auto before = static_cast<std::size_t>(dash - text);
  const char* low = text;
  const char* high = dash + 1;
  std::size_t low_length = before;
  std::size_t high_length = length - before - 1;
  trim(&low, &low_length);
  trim(&high, &high_length);
  if (low_length == 0 && high_length == 0) {
    return false;
  }
  return (low_length == 0 || parse_size(low, low_length, &rule->least)) &&
         (high_length == 0 || parse_size(high, high_length, &rule->most)) &&
         rule->least <= rule->most;
}

// Until one is refused.
template <typename Take>
bool each_piece(const char* text, Take take) noexcept {
  for (;;) {
    const std::size_t whole = std::strcspn(text, ",");
    const char* piece = text;
    std::size_t length = whole;
    trim(&piece, &length);
    if (!take(piece, length)) {
      return false;
    }
    if (text[whole] == '\0') {
      return true;
    }
    text += whole + 1;
  }
}

}  // namespace

PlainRules::PlainRules() noexcept {
  for (const char* library : kSharing) {
    add(library, std::strlen(library));
  }
}

bool PlainRules::add(const char* text, std::size_t length) noexcept {
  if (length == 0 || count_ == kMost) {
    return false;
  }
  PlainRule rule;
  if (std::isalpha(static_cast<unsigned char>(*text)) || *text == '_') {
    const auto* colon = static_cast<const char*>(std::memchr(text, ':', length));
    std::size_t name = colon ? static_cast<std::size_t>(colon - text) : length;
    const char* sizes = colon ? colon + 1 : nullptr;
    std::size_t sizes_length = colon ? length - name - 1 : 0;
    const char* library = text;
    trim(&library, &name);
    if (name >= sizeof rule.library || same_word(library, name, "none")) {
      return false;
    }
    for (std::size_t i = 0; i < name; ++i) {
      if (!of_a_name(library[i])) {
        return false;
      }
      rule.library[i] = library[i];
    }
    if (sizes) {
      trim(&sizes, &sizes_length);
      if (!parse_sizes(sizes, sizes_length, &rule)) {
        return false;
      }
    }
  } else if (!parse_sizes(text, length, &rule)) {
    return false;
  }
  rules_[count_++] = rule;
  return true;
}

bool PlainRules::parse(const char* text) noexcept {
  bool none = false;
  each_piece(text, [&](const char* piece, std::size_t length) {
    none = none || same_word(piece, length, "none");
    return true;
  });
  PlainRules made;
  if (none) {
    made.count_ = 0;
  }
  const bool good = each_piece(text, [&](const char* piece, std::size_t length) {
    return same_word(piece, length, "none") || made.add(piece, length);
  });
  if (good) {
    *this = made;
  }
  return good;
}

bool PlainRules::by_size(std::uint64_t bytes) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!rules_[i].library[0] && rules_[i].holds(bytes)) {
      return true;
    }
  }
  return false;
}

PlainRules::Set PlainRules::by_library(std::uint64_t bytes) const noexcept {
  Set found = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    found |= rules_[i].library[0] && rules_[i].holds(bytes) ? Set{1} << i : 0;
  }
  return found;
}

PlainRules::Set PlainRules::naming(const char* file) const noexcept {
  Set found = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t length = std::strlen(rules_[i].library);
    if (length && std::strncmp(file, rules_[i].library, length) == 0 &&
        !std::isalnum(static_cast<unsigned char>(file[length]))) {
      found |= Set{1} << i;
    }
  }
  return found;
}

}  // namespace deepum::runtime
