// Cases of the mover's rules. Without arguments it prints their names, a line each; with one, it
// runs that case, and says on stderr what does not hold (exit code 1).
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cases.hpp"

namespace {

int failures = 0;

const char* base(const char* file) {
  const char* const slash = std::strrchr(file, '/');
  return slash != nullptr ? slash + 1 : file;
}

}  // namespace

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

void check(bool holds, const char* claim, const char* file, int line) {
  if (!holds) {
    ++failures;
    std::fprintf(stderr, "%s:%d: %s\n", base(file), line, claim);
  }
}

void expect(const Log& told, const Log& expected, const char* file, int line) {
  if (told == expected) {
    return;
  }
  ++failures;
  std::fprintf(stderr, "%s:%d: the mover did\n", base(file), line);
  for (const std::string& each : told) {
    std::fprintf(stderr, "    %s\n", each.c_str());
  }
  std::fprintf(stderr, "  where the case wants\n");
  for (const std::string& each : expected) {
    std::fprintf(stderr, "    %s\n", each.c_str());
  }
}

int main(int count, char** arguments) {
  if (count < 2) {
    for (const Case& each : cases()) {
      std::puts(each.name);
    }
    return 0;
  }
  const auto found = std::ranges::find_if(
      cases(), [&](const Case& each) { return std::strcmp(each.name, arguments[1]) == 0; });
  if (found == cases().end()) {
    std::fprintf(stderr, "%s: no such case\n", arguments[1]);
    return 1;
  }
  found->run();
  return failures == 0 ? 0 : 1;
}
