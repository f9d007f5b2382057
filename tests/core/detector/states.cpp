// What an IterationDetector says after each launch. Input, a line each: "HASH NAMED" for a launch,
// "wait", "forget". Output, a line a launch: period, position, begins, as_expected, iterations.
#include <cstdint>
#include <iostream>
#include <string>

#include "iteration/iteration_detector.hpp"

int main() {
  std::ios::sync_with_stdio(false);
  deepum::core::IterationDetector detector;
  std::string word;
  while (std::cin >> word) {
    if (word == "wait") {
      detector.waited();
    } else if (word == "forget") {
      detector.forget();
    } else {
      std::uint64_t named = 0;
      std::cin >> named;
      detector.launched(std::stoull(word), named);
      std::cout << detector.period().value_or(0) << ' ' << detector.position() << ' '
                << detector.begins() << ' ' << detector.as_expected() << ' '
                << detector.iterations() << '\n';
    }
  }
}
