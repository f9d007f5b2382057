#include "live_figures.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::size_t kNameBytes = 32;
constexpr int kMostImages = 1000;  // that one process has by exec

// The file: this, the names of the fields (kNameBytes each), and twice the rows: all devices
// together, then each. A field is a double. deepum/statistics/live_figures.py reads it.
struct Header {
  char magic[8];
  std::uint32_t version, pid, rows, fields;
  // Which of the two copies of the rows is whole; the other may be half written.
  std::uint32_t current;
  std::uint32_t reserved;
  char machine[64];
};
static_assert(sizeof(Header) == 96);

constexpr std::size_t kFields = 1 + kTimes + kCounts;  // memory_bytes first

struct Live {
  std::string stem;
  Header* header = nullptr;
  double* rows[2] = {nullptr, nullptr};
  std::string path() const { return stem + ".live"; }
};

Live& live() {
  // Outlives every destructor.
  static auto* const made = new Live;  // NOLINT(bugprone-unhandled-exception-at-new)
  return *made;
}

double seconds(double ns) { return std::isfinite(ns) ? ns * 1e-9 : 0.0; }

std::size_t bytes_of_rows(const State& state) {
  return (1 + state.devices.size()) * kFields * sizeof(double);
}

void fill_row(double* row, std::uint64_t memory_bytes, const um_model::Counters& counters) {
  *row++ = static_cast<double>(memory_bytes);
  for (const auto& [name, value] : times_of(counters)) *row++ = value;
  for (const auto& [name, value] : counts_of(counters)) *row++ = static_cast<double>(value);
}

void name_fields(char* names) {
  const auto name = [&names](const char* text) {
    std::strncpy(names, text, kNameBytes - 1);
    names += kNameBytes;
  };
  name("memory_bytes");
  for (const auto& [text, value] : times_of({})) name(text);
  for (const auto& [text, value] : counts_of({})) name(text);
}

}  // namespace

std::array<std::pair<const char*, double>, kTimes> times_of(const um_model::Counters& c) {
  return {{{"gpu_time_s", seconds(c.gpu_time_ns)},
           {"compute_s", seconds(c.compute_ns)},
           {"stall_s", seconds(c.stall_ns)}}};
}

std::array<std::pair<const char*, std::uint64_t>, kCounts> counts_of(const um_model::Counters& c) {
  return {{
      {"kernels", c.kernels},
      {"copies", c.copies},
      {"faults", c.faults},
      {"fault_batches", c.fault_batches},
      {"bytes_h2d", c.bytes_h2d},
      {"bytes_d2h", c.bytes_d2h},
      {"bytes_demand", c.bytes_demand},
      {"bytes_prefetched", c.bytes_prefetched},
      {"bytes_prefetched_used", c.bytes_prefetched_used},
      {"bytes_driver_evicted", c.bytes_driver_evicted},
      {"bytes_prefetched_out", c.bytes_prefetched_out},
      {"bytes_discarded", c.bytes_discarded},
      {"bytes_accessed", c.bytes_accessed},
      {"bytes_missing", c.bytes_missing},
      {"resident_bytes", c.resident_bytes},
      {"peak_resident_bytes", c.peak_resident_bytes},
      {"managed_bytes", c.managed_bytes},
      {"peak_managed_bytes", c.peak_managed_bytes},
      {"discarded_uses", c.discarded_uses},
      {"discarded_uses_sure", c.discarded_uses_sure},
      {"host_bytes", c.host_bytes},
      {"peak_host_bytes", c.peak_host_bytes},
      {"bytes_disk_read", c.bytes_disk_read},
      {"bytes_disk_written", c.bytes_disk_written},
  }};
}

const std::string& statistics_stem() { return live().stem; }

void begin_live_figures(const State& state) {
  const char* const folder = std::getenv("DEEPUM_STATS_DIR");
  if (folder == nullptr || *folder == '\0') return;
  Live& now = live();
  const std::string first = std::string(folder) + "/sim-" + std::to_string(getpid());
  now.stem = first;
  int file = -1;
  // A process that replaced itself by exec comes a second time with the same id; what the first
  // image did is kept.
  for (int image = 2; image < kMostImages; ++image) {
    const bool done = access((now.stem + ".json").c_str(), F_OK) == 0;
    if (!done) file = open(now.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (!done && (file >= 0 || errno != EEXIST)) break;
    now.stem = first + "-" + std::to_string(image);
  }
  if (file < 0) return;
  const std::size_t rows = bytes_of_rows(state), start = sizeof(Header) + kFields * kNameBytes,
                    bytes = start + 2 * rows;
  // With its blocks: writing to a file without room for them would end the program by SIGBUS.
  void* at = MAP_FAILED;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0)
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) {
    unlink(now.path().c_str());
    return;
  }
  now.header = static_cast<Header*>(at);
  auto* const base = static_cast<char*>(at);
  now.rows[0] = reinterpret_cast<double*>(base + start);
  now.rows[1] = reinterpret_cast<double*>(base + start + rows);
  name_fields(base + sizeof(Header));
  *now.header = {{'D', 'E', 'E', 'P', 'U', 'M', 'L', 'F'},
                 1,
                 static_cast<std::uint32_t>(getpid()),
                 static_cast<std::uint32_t>(1 + state.devices.size()),
                 kFields,
                 0,
                 0,
                 {}};
  std::strncpy(now.header->machine, std::string(state.machine.name).c_str(),
               sizeof now.header->machine - 1);
  update_live_figures(state);
}

void update_live_figures(const State& state) {
  const Live& now = live();
  if (now.header == nullptr) return;
  const std::uint32_t next = 1 - now.header->current;
  double* row = now.rows[next];
  fill_row(row, state.devices.front().memory_bytes, state.engine.counters(um_model::kCpu));
  for (std::size_t device = 0; device < state.devices.size(); ++device) {
    row += kFields;
    fill_row(row, state.devices[device].memory_bytes,
             state.engine.counters(static_cast<int>(device)));
  }
  std::atomic_ref(now.header->current).store(next, std::memory_order_release);
}

void end_live_figures() {
  if (live().header != nullptr) unlink(live().path().c_str());
}

}  // namespace deepum::simgpu
