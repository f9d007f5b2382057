#include "message.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "shim_settings.hpp"

namespace deepum::runtime {

void say(Level level, const char* format, ...) noexcept {
  if (settings().log_level < static_cast<int>(level)) {
    return;
  }
  const int kept = errno;
  char line[512] = "deepum: ";
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line + 8, sizeof line - 9, format, arguments);
  va_end(arguments);
  const std::size_t length = std::strlen(line);
  line[length] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length + 1);
  errno = kept;
}

}  // namespace deepum::runtime
