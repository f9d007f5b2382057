// Parameters of `.entry` functions, by the PTX ISA's rules: each .param is aligned to its type's
// size or to its `.align`.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "layouts.hpp"

namespace deepum::simgpu {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // The next token: a word (letters, digits, _ $ % .) or one other character; empty at the end.
  // Comments are skipped.
  std::string_view next() {
    skip();
    if (at_ >= text_.size()) return {};
    const std::size_t begin = at_++;
    if (is_word(text_[begin])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else if (text_[begin] == '"') {
      at_ = std::min(text_.find('"', at_), text_.size() - 1) + 1;
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
           c == '.';
  }

  void skip() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      const std::string_view rest = text_.substr(std::min(at_, text_.size()));
      std::size_t end;
      if (rest.starts_with("//")) {
        end = rest.find('\n');
      } else if (rest.starts_with("/*")) {
        end = rest.find("*/");
        if (end != std::string_view::npos) end += 2;
      } else {
        return;
      }
      at_ = end == std::string_view::npos ? text_.size() : at_ + end;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint32_t number(std::string_view word) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    throw Malformed("PTX: a number was expected");
  return value;
}

// .u64 and the like -> 8; 0: not a type.
std::uint32_t type_bytes(std::string_view word) {
  if (word.size() < 3 || word[0] != '.' ||
      std::string_view("busf").find(word[1]) == std::string_view::npos)
    return 0;
  std::uint32_t bits = 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), bits);
  if (error != std::errc() || end != word.data() + word.size()) return 0;
  return bits / 8;
}

// After `.param`, up to and including the `,` or `)` that ends it, which is returned.
char read_parameter(Reader& reader, ParameterLayout& layout) {
  std::uint32_t bytes = 0, align = 0, count = 1;
  bool pointee = false;
  for (;;) {
    const std::string_view word = reader.next();
    if (word.empty()) throw Malformed("PTX: unterminated parameter list");
    if (word == "," || word == ")") {
      if (bytes == 0) throw Malformed("PTX: a parameter without a type");
      align = std::max({align, bytes, 1u});
      const std::uint32_t offset = (layout.bytes + align - 1) / align * align;
      layout.parameters.push_back({offset, bytes * count});
      layout.bytes = offset + bytes * count;
      return word[0];
    }
    if (word == ".ptr") {
      pointee = true;  // an .align after it is that of what is pointed to
    } else if (word == ".align") {
      const std::uint32_t value = number(reader.next());
      if (!pointee) align = value;
    } else if (word == "[") {
      count = number(reader.next());
    } else if (const std::uint32_t size = type_bytes(word); size != 0) {
      bytes = size;
    }
  }
}

}  // namespace

Layouts layouts_of_ptx(std::string_view text) {
  Layouts layouts;
  Reader reader(text);
  for (std::string_view word = reader.next(); !word.empty(); word = reader.next()) {
    if (word != ".entry") continue;
    const std::string name(reader.next());
    ParameterLayout layout{{}, 0};
    if (reader.next() == "(") {
      for (;;) {
        const std::string_view start = reader.next();
        if (start == ")") break;
        if (start != ".param") throw Malformed("PTX: .param was expected");
        if (read_parameter(reader, layout) == ')') break;
      }
    }
    layouts.emplace(name, std::move(layout));
  }
  return layouts;
}

}  // namespace deepum::simgpu
