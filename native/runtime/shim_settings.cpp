// The spelling, ranges and defaults are those of deepum/configuration/settings.py.
#include "shim_settings.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>

#include "message.hpp"
#include "size_text.hpp"

namespace deepum::runtime {
namespace {

// Bad values are told after everything is read: DEEPUM_LOG may come later than the first of them.
struct Complaint {
  const char* name;
  const char* text;
  const char* expected;
};
constexpr int kMostComplaints = 16;

struct Reader {
  Complaint complaints[kMostComplaints];
  int count = 0;

  const char* text(const char* name) const noexcept {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
  }
  void complain(const char* name, const char* text, const char* expected) noexcept {
    if (count < kMostComplaints) {
      complaints[count++] = {name, text, expected};
    }
  }
  void sizes(const char* name, std::uint64_t low, const char* expected,
             DeviceSizes* value) noexcept;
  void boolean(const char* name, bool* value) noexcept;
  void number(const char* name, std::uint64_t low, std::uint64_t high, const char* expected,
              std::uint64_t* value) noexcept;
  void size(const char* name, std::uint64_t low, const char* expected,
            std::uint64_t* value) noexcept;
  template <typename Meaning>
  void choice(const char* name, std::initializer_list<std::pair<const char*, Meaning>> words,
              const char* expected, Meaning* value) noexcept;
  void rules(const char* name, PlainRules* value) noexcept;
};

// With commas between, one for each GPU; those that follow have what the last one has.
void Reader::sizes(const char* name, std::uint64_t low, const char* expected,
                   DeviceSizes* value) noexcept {
  const char* given = text(name);
  if (!given) {
    return;
  }
  DeviceSizes read = *value;
  int device = 0;
  for (const char* at = given; at; ++device) {
    const char* comma = std::strchr(at, ',');
    std::uint64_t bytes;
    if (device == DEEPUM_MAX_DEVICES ||
        !parse_size(at, comma ? static_cast<std::size_t>(comma - at) : std::strlen(at), &bytes) ||
        bytes < low) {
      return complain(name, given, expected);
    }
    for (int further = device; further < DEEPUM_MAX_DEVICES; ++further) {
      read.bytes[further] = bytes;
    }
    at = comma ? comma + 1 : nullptr;
  }
  *value = read;
}

void Reader::boolean(const char* name, bool* value) noexcept {
  const char* given = text(name);
  if (!given) {
    return;
  }
  const char* word = given;
  std::size_t length = std::strlen(given);
  trim(&word, &length);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (same_word(word, length, yes)) {
      *value = true;
      return;
    }
  }
  for (const char* no : {"0", "false", "no", "off", ""}) {
    if (same_word(word, length, no)) {
      *value = false;
      return;
    }
  }
  complain(name, given, "write 1 or 0");
}

void Reader::number(const char* name, std::uint64_t low, std::uint64_t high, const char* expected,
                    std::uint64_t* value) noexcept {
  const char* given = text(name);
  if (!given) {
    return;
  }
  const char* at = given;
  std::size_t length = std::strlen(given);
  trim(&at, &length);
  const char* end = at + length;
  std::uint64_t number;
  if (!read_digits(&at, end, &number) || at != end || number < low || number > high) {
    return complain(name, given, expected);
  }
  *value = number;
}

void Reader::size(const char* name, std::uint64_t low, const char* expected,
                  std::uint64_t* value) noexcept {
  const char* given = text(name);
  if (!given) {
    return;
  }
  std::uint64_t bytes;
  if (!parse_size(given, std::strlen(given), &bytes) || bytes < low) {
    return complain(name, given, expected);
  }
  *value = bytes;
}

template <typename Meaning>
void Reader::choice(const char* name, std::initializer_list<std::pair<const char*, Meaning>> words,
                    const char* expected, Meaning* value) noexcept {
  const char* given = text(name);
  if (!given) {
    return;
  }
  for (const auto& [word, meaning] : words) {
    if (std::strcmp(given, word) == 0) {
      *value = meaning;
      return;
    }
  }
  complain(name, given, expected);
}

void Reader::rules(const char* name, PlainRules* value) noexcept {
  const char* given = text(name);
  if (given && !value->parse(given)) {
    complain(name, given,
             "write sizes (2MiB-20MiB), libraries (libnccl), LIBRARY:SIZES or none, with commas "
             "between");
  }
}

ShimSettings read(Reader& reader) noexcept {
  ShimSettings made;
  std::uint64_t log = static_cast<std::uint64_t>(made.log_level);
  std::uint64_t prefetch = made.prefetch ? 1 : 0;
  std::uint64_t gates = made.gates ? 1 : 0;
  std::uint64_t interval = made.marker_interval;
  std::uint64_t fault_interval = made.fault_interval;
  reader.boolean("DEEPUM_DISABLE", &made.disabled);
  reader.boolean("DEEPUM_SYNC", &made.lock_step);
  reader.boolean("DEEPUM_HOST_MEMORY_VIRTUAL", &made.host_memory_is_virtual);
  reader.number("DEEPUM_LOG", 0, 3, "write a number from 0 to 3", &log);
  reader.number("DEEPUM_PREFETCH", 0, 1, "write 1 or 0", &prefetch);
  reader.number("DEEPUM_GATES", 0, 1, "write 1 or 0", &gates);
  reader.size("DEEPUM_MANAGED_LIMIT", 0, "write a size like 8GiB", &made.managed_limit);
  reader.sizes("DEEPUM_GPU_MEMORY", 64ull << 20,
               "write a size of at least 64MiB, or one for each GPU with commas between",
               &made.gpu_memory);
  reader.size("DEEPUM_GPU_RESERVE", 0, "write a size like 128MiB", &made.gpu_reserve);
  reader.size("DEEPUM_HOST_MEMORY", 0, "write a size like 8GiB", &made.host_memory);
  reader.size("DEEPUM_MANAGED_THRESHOLD", 0, "write a size like 1MiB", &made.managed_threshold);
  reader.rules("DEEPUM_PLAIN_MEMORY", &made.plain_memory);
  reader.number("DEEPUM_MARKER_INTERVAL", 1, 1u << 20, "write a number from 1 to 1048576",
                &interval);
  reader.choice("DEEPUM_FAULTS",
                {{"auto", Faults::kAuto},
                 {"on", Faults::kOn},
                 {"off", Faults::kOff},
                 {"times", Faults::kTimes}},
                "write auto, on, off or times", &made.faults);
  reader.choice("DEEPUM_FAULT_SOURCE",
                {{"auto", FaultSources::kAuto},
                 {"cupti", FaultSources::kCupti},
                 {"uvm-tools", FaultSources::kUvmTools}},
                "write auto, cupti or uvm-tools", &made.fault_source);
  reader.choice(
      "DEEPUM_MOVES",
      {{"auto", Deferral::kUnknown}, {"stream", Deferral::kDefers}, {"host", Deferral::kBlocks}},
      "write auto, stream or host", &made.deferral);
  reader.number("DEEPUM_FAULT_INTERVAL", 1, 1u << 20, "write a number from 1 to 1048576",
                &fault_interval);
  reader.size("DEEPUM_HANDOVER_BYTES", 2ull << 20, "write a size of at least 2MiB",
              &made.handover_bytes);
  reader.number("DEEPUM_DAEMON_SILENCE", 1, 1000000, "write a number from 1 to 1000000",
                &made.daemon_silence);
  made.log_level = static_cast<int>(log);
  made.prefetch = prefetch != 0;
  made.gates = gates != 0;
  made.marker_interval = static_cast<std::uint32_t>(interval);
  made.fault_interval = static_cast<std::uint32_t>(fault_interval);
  return made;
}

std::atomic<bool> reported{false};

}  // namespace

const ShimSettings& settings() noexcept {
  static Reader reader;
  static const ShimSettings read_once = read(reader);
  if (reader.count != 0 && !reported.exchange(true)) [[unlikely]] {
    for (int i = 0; i < reader.count; ++i) {
      const Complaint& bad = reader.complaints[i];
      say(Level::kWarning, "warning: %s: '%.100s' is not usable; %s (the default holds)", bad.name,
          bad.text, bad.expected);
    }
  }
  return read_once;
}

const char* daemon_silent() noexcept {
  struct Text {
    char message[64];
    Text() noexcept {
      std::snprintf(message, sizeof message, "it has been silent for %llu s",
                    static_cast<unsigned long long>(settings().daemon_silence));
    }
  };
  static const Text text;
  return text.message;
}

}  // namespace deepum::runtime
