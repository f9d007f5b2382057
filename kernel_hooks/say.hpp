// One line to standard error, at most once each.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "shim_settings.hpp"

namespace deepum::hooks {

[[gnu::format(printf, 2, 3)]] inline void say_once(std::atomic<bool>& warned, const char* format,
                                                   ...) noexcept {
  if (runtime::settings().log_level < 1 || warned.exchange(true)) {
    return;
  }
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length <= 0) {
    return;
  }
  const auto bytes =
      length < static_cast<int>(sizeof line) ? static_cast<std::size_t>(length) : sizeof line - 1;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, bytes);
}

}  // namespace deepum::hooks
