// Named cases, and what they claim. What does not hold is told on standard error.
#pragma once

#include <string>
#include <vector>

using Log = std::vector<std::string>;

struct Case {
  const char* name;
  void (*run)();
};

// All that the sources define, in no order.
std::vector<Case>& cases();

struct Registered {
  Registered(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

void check(bool holds, const char* claim, const char* file, int line);
void expect(const Log& told, const Log& expected, const char* file, int line);

#define CASE(name)                              \
  static void name();                           \
  static const Registered name##_(#name, name); \
  static void name()
#define CHECK(claim) check(claim, #claim, __FILE__, __LINE__)
#define EXPECT(told, ...) expect(told, Log{__VA_ARGS__}, __FILE__, __LINE__)
