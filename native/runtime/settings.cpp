// The shim's settings, from the environment. A bad value is said once and the default kept: a shim must not stop its program.
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "log.hpp"
#include "session.hpp"

namespace deepum::runtime {
namespace {

void write_line(const char* line, std::size_t bytes) noexcept { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, bytes); }

void complain(const char* name, const char* value, const char* expected) noexcept {
  char line[256];
  const int length = std::snprintf(line, sizeof line, "deepum: warning: %s=%.64s is not %s; the default is used\n", name, value, expected);
  write_line(line, length < static_cast<int>(sizeof line) ? length : sizeof line - 1);
}

bool read_flag(const char* name, bool fallback) noexcept {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return fallback;
  }
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (strcasecmp(value, yes) == 0) {
      return true;
    }
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (strcasecmp(value, no) == 0) {
      return false;
    }
  }
  complain(name, value, "0 or 1");
  return fallback;
}

// 8GiB, 8G, 512MiB, 1.5GiB, 4096; K, M, G, T are powers of 1024, as with every deepum size.
std::uint64_t read_bytes(const char* name, std::uint64_t fallback) noexcept {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return fallback;
  }
  char* end = nullptr;
  const double number = std::strtod(value, &end);
  double unit = 1;
  if (end != value) {
    switch (*end) {
      case 'k':
      case 'K':
        unit = 1024.0, ++end;
        break;
      case 'm':
      case 'M':
        unit = 1024.0 * 1024, ++end;
        break;
      case 'g':
      case 'G':
        unit = 1024.0 * 1024 * 1024, ++end;
        break;
      case 't':
      case 'T':
        unit = 1024.0 * 1024 * 1024 * 1024, ++end;
        break;
      default:
        break;
    }
    if (unit > 1 && (*end == 'i' || *end == 'I')) {
      ++end;
    }
    if (*end == 'b' || *end == 'B') {
      ++end;
    }
  }
  const double bytes = number * unit;
  if (end == value || *end != '\0' || !(bytes >= 0) || bytes >= 9e18) {
    complain(name, value, "a size like 8GiB");
    return fallback;
  }
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t read_count(const char* name, std::uint64_t fallback, std::uint64_t least, std::uint64_t most) noexcept {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return fallback;
  }
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(value, &end, 10);
  if (errno != 0 || *end != '\0' || *value == '-' || number < least || number > most) {
    complain(name, value, "a whole number in its range");
    return fallback;
  }
  return number;
}

ShimSettings read_settings() noexcept {
  ShimSettings s;
  s.disabled = read_flag("DEEPUM_DISABLE", s.disabled);
  if (s.disabled) {
    return s;
  }
  s.lock_step = read_flag("DEEPUM_SYNC", s.lock_step);
  s.log_level = static_cast<int>(read_count("DEEPUM_LOG", static_cast<std::uint64_t>(s.log_level), 0, 3));
  s.managed_limit = read_bytes("DEEPUM_MANAGED_LIMIT", s.managed_limit);
  s.gpu_memory = read_bytes("DEEPUM_GPU_MEMORY", s.gpu_memory);
  s.host_memory = read_bytes("DEEPUM_HOST_MEMORY", s.host_memory);
  s.managed_threshold = read_bytes("DEEPUM_MANAGED_THRESHOLD", s.managed_threshold);
  s.marker_interval = static_cast<std::uint32_t>(read_count("DEEPUM_MARKER_INTERVAL", s.marker_interval, 1, 4096));
  s.handover_bytes = read_bytes("DEEPUM_HANDOVER_BYTES", s.handover_bytes);
  return s;
}

}  // namespace

const ShimSettings& settings() noexcept {
  static const ShimSettings read = read_settings();
  return read;
}

void say(int level, const char* format, ...) noexcept {
  if (settings().log_level < level) {
    return;
  }
  char line[512];
  const char* rank = level <= 1 ? "deepum: warning: " : "deepum: ";
  const std::size_t start = std::strlen(rank);
  std::memcpy(line, rank, start);
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line + start, sizeof line - start - 1, format, arguments);
  va_end(arguments);
  if (length < 0) {
    return;
  }
  std::size_t bytes = start + static_cast<std::size_t>(length);
  bytes = bytes < sizeof line - 1 ? bytes : sizeof line - 2;
  line[bytes++] = '\n';
  write_line(line, bytes);
}

}  // namespace deepum::runtime
