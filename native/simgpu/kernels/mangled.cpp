#include "mangled.hpp"

#include <cctype>

namespace deepum::simgpu {
namespace {

// Size of the type at `at`, which moves behind it; 0 (and `at` unmoved) for anything but scalars.
std::uint64_t take_type(std::string_view name, std::size_t& at) {
  struct Named {
    std::string_view mangled;
    std::uint64_t bytes;
  };
  static constexpr Named kNamed[] = {{"N3c104HalfE", 2},           {"N3c108BFloat16E", 2},
                                     {"N3c107complexIfEE", 8},     {"N3c107complexIdEE", 16},
                                     {"N3c1013Float8_e4m3fnE", 1}, {"N3c1011Float8_e5m2E", 1}};
  for (const Named& named : kNamed) {
    if (name.substr(at).starts_with(named.mangled)) {
      at += named.mangled.size();
      return named.bytes;
    }
  }
  if (at >= name.size()) return 0;
  switch (name[at]) {
    case 'f':
    case 'i':
    case 'j':
      ++at;
      return 4;
    case 'd':
    case 'l':
    case 'm':
    case 'x':
    case 'y':
      ++at;
      return 8;
    case 's':
    case 't':
      ++at;
      return 2;
    case 'a':
    case 'b':
    case 'c':
    case 'h':
      ++at;
      return 1;
    default:
      return 0;
  }
}

void skip_literals(std::string_view name, std::size_t& at) {
  while (at < name.size() && name[at] == 'L') {
    const std::size_t end = name.find('E', at);
    at = end == std::string_view::npos ? name.size() : end + 1;
  }
}

std::vector<std::uint64_t> take_types(std::string_view name, std::size_t at) {
  std::vector<std::uint64_t> types;
  for (;;) {
    skip_literals(name, at);
    const std::uint64_t bytes = take_type(name, at);
    if (bytes == 0) return types;
    types.push_back(bytes);
  }
}

// Calls visit(position after "I" or "Ul", identifier before it, whether it is a lambda) until it
// answers true. Identifiers and substitutions are stepped over whole, so that letters in them are
// not taken for types.
template <typename Visit>
void walk(std::string_view name, Visit visit) {
  std::string_view identifier;
  for (std::size_t at = 0; at < name.size();) {
    const char c = name[at];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      std::size_t length = 0;
      while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0)
        length = 10 * length + (name[at++] - '0');
      if (length > name.size() - at) return;
      identifier = name.substr(at, length);
      at += length;
    } else if (c == 'L') {
      skip_literals(name, at);
    } else if (c == 'S' && at + 1 < name.size() &&
               (name[at + 1] == '_' ||
                std::isdigit(static_cast<unsigned char>(name[at + 1])) != 0)) {
      const std::size_t end = name.find('_', at);
      if (end == std::string_view::npos) return;
      at = end + 1;
    } else if (c == 'I') {
      if (visit(++at, identifier, false)) return;
    } else if (name.substr(at).starts_with("Ul")) {
      at += 2;
      if (visit(at, identifier, true)) return;
      const std::size_t end = name.find('E', at);
      if (end == std::string_view::npos) return;
      at = end + 1;
      // The lambda's number.
      while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0) ++at;
    } else {
      ++at;
    }
  }
}

std::vector<std::uint64_t> first_types(std::string_view name, std::string_view identifier,
                                       bool lambda) {
  std::vector<std::uint64_t> found;
  walk(name, [&](std::size_t at, std::string_view before, bool is_lambda) {
    if (is_lambda != lambda || (!lambda && !before.ends_with(identifier))) return false;
    found = take_types(name, at);
    return !found.empty();
  });
  return found;
}

}  // namespace

std::vector<std::uint64_t> template_type_bytes(std::string_view name, std::string_view identifier) {
  return first_types(name, identifier, false);
}

std::vector<std::uint64_t> type_bytes_after(std::string_view name, std::string_view text) {
  const std::size_t at = name.find(text);
  return at == std::string_view::npos ? std::vector<std::uint64_t>{}
                                      : take_types(name, at + text.size());
}

std::vector<std::uint64_t> lambda_type_bytes(std::string_view name) {
  return first_types(name, {}, true);
}

}  // namespace deepum::simgpu
