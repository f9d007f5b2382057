#include "stats.hpp"

#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "live_figures.hpp"
#include "not_simulated.hpp"
#include "streams.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::size_t kMostPoints = 20000;

struct Point {
  double t_s;
  um_model::Counters counters;
};

// When it is full every second point goes, and from then on only every second call is noted.
struct Timeline {
  std::vector<Point> points;
  std::uint64_t calls = 0, stride = 1;
};

Timeline& timeline() {
  static auto* const made = new Timeline;
  return *made;
}

double seconds(double ns) { return std::isfinite(ns) ? ns * 1e-9 : 0.0; }

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

class Json {
 public:
  explicit Json(std::FILE* file) : file_(file) {}
  void open(const char* name, char bracket) {
    std::fprintf(file_, "%s%c", begin(name).c_str(), bracket), first_ = true;
  }
  void close(char bracket) { std::fprintf(file_, "%c", bracket), first_ = false; }
  void number(const char* name, std::uint64_t value) {
    std::fprintf(file_, "%s%" PRIu64, begin(name).c_str(), value);
  }
  void real(const char* name, double value) {
    std::fprintf(file_, "%s%.9f", begin(name).c_str(), value);
  }
  void text(const char* name, const std::string& value) {
    std::fprintf(file_, "%s%s", begin(name).c_str(), quoted(value).c_str());
  }

 private:
  std::string begin(const char* name) {
    std::string out = first_ ? "" : ", ";
    first_ = false;
    if (name != nullptr) out += quoted(name) + ": ";
    return out;
  }
  std::FILE* file_;
  bool first_ = true;
};

// whole: of all devices, with the host's.
void write_counters(Json& json, const um_model::Counters& c, bool whole) {
  for (const auto& [name, value] : times_of(c)) json.real(name, value);
  const auto counts = counts_of(c);
  for (std::size_t i = 0; i < (whole ? kCounts : kCountsOfDevice); ++i)
    json.number(counts[i].first, counts[i].second);
}

void write_json(State& state, std::FILE* file) {
  Json json(file);
  json.open(nullptr, '{');
  json.number("version", 1);
  json.number("pid", static_cast<std::uint64_t>(getpid()));
  json.text("machine", std::string(state.machine.name));
  json.number("device_count", state.devices.size());
  json.number("memory_bytes", state.devices.front().memory_bytes);
  write_counters(json, state.engine.counters(um_model::kCpu), true);
  json.open("devices", '[');
  for (std::size_t device = 0; device < state.devices.size(); ++device) {
    json.open(nullptr, '{');
    json.number("memory_bytes", state.devices[device].memory_bytes);
    write_counters(json, state.engine.counters(static_cast<int>(device)), false);
    json.close('}');
  }
  json.close(']');
  json.open("timeline", '[');
  for (const Point& point : timeline().points) {
    json.open(nullptr, '{');
    json.real("t_s", point.t_s);
    json.real("compute_s", seconds(point.counters.compute_ns));
    json.number("faults", point.counters.faults);
    json.number("fault_batches", point.counters.fault_batches);
    json.number("bytes_h2d", point.counters.bytes_h2d);
    json.number("bytes_d2h", point.counters.bytes_d2h);
    json.number("bytes_demand", point.counters.bytes_demand);
    json.number("kernels", point.counters.kernels);
    json.number("bytes_missing", point.counters.bytes_missing);
    json.number("bytes_accessed", point.counters.bytes_accessed);
    json.close('}');
  }
  json.close(']');
  json.open("not_simulated", '[');
  for (const std::string& name : not_simulated_names()) json.text(nullptr, name);
  json.close(']');
  json.open("unparsed_kernels", '[');
  for (const std::string& name : state.unparsed_kernels) json.text(nullptr, name);
  json.close(']');
  json.open("general_kernels", '[');
  for (const std::string& name : state.general_kernels) json.text(nullptr, name);
  json.close(']');
  json.close('}');
  std::fputc('\n', file);
}

// Waits a moment for a thread that is inside a call; threads go on running while the process exits.
bool lock_patiently(std::unique_lock<std::mutex>& guard) {
  for (int i = 0; i < 2000 && !guard.try_lock(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return guard.owns_lock();
}

// Runs after the program's exit handlers. Not in a forked child (state() is null there), not on
// _exit: then the live figures remain.
__attribute__((destructor)) void write_statistics() {
  State* const now = state();
  if (now == nullptr) return;
  std::unique_lock guard(lock(), std::defer_lock);
  const bool locked = lock_patiently(guard);
  if (locked) now->work_log.close();
  if (statistics_stem().empty()) return;
  const std::string name = statistics_stem() + ".json";
  if (!locked) {
    std::fprintf(stderr,
                 "deepum: warning: %s: a thread is stuck in the driver; work that is still queued "
                 "is not counted\n",
                 name.c_str());
    return;
  }
  // What is queued still counts, but host memory it would read or write may be gone by now.
  // Moves of helper threads count as far as they got.
  now->ended = true;
  for (const void* const pointer : now->streams) {
    const auto* const stream = static_cast<const CUstream_st*>(pointer);
    if (stream->program_work) now->engine.synchronise_stream(um_model::kProgram, stream->id);
  }
  const std::string unfinished = name + ".part";
  std::FILE* const file = std::fopen(unfinished.c_str(), "we");
  if (file == nullptr) {
    std::fprintf(stderr, "deepum: error: %s: %s; the simulated GPU's statistics are not complete\n",
                 unfinished.c_str(), std::strerror(errno));
    return;
  }
  write_json(*now, file);
  if (std::fclose(file) == 0 && std::rename(unfinished.c_str(), name.c_str()) == 0)
    end_live_figures();
}

}  // namespace

void note_blocking_call(State& state) {
  Timeline& t = timeline();
  if (t.calls++ % t.stride != 0) return;
  if (t.points.size() >= kMostPoints) {
    for (std::size_t i = 0; 2 * i < t.points.size(); ++i) t.points[i] = t.points[2 * i];
    t.points.resize(t.points.size() / 2);
    t.stride *= 2;
  }
  t.points.push_back(
      {seconds(state.engine.now(um_model::kProgram)), state.engine.counters(um_model::kCpu)});
}

void poison(State& state, um_model::Range range) {
  if (!state.host_module_loaded || state.ended) return;
  constexpr int kPoison = 0xD5;
  // Only what is allocated still: a discard may take effect after the memory was freed.
  const std::uint64_t end = range.address + range.bytes;
  for (std::uint64_t at = range.address; at < end;) {
    const Allocation* const allocation = state.memory.find(at);
    if (allocation == nullptr || allocation->kind != MemoryKind::managed) {
      at = (at / um_model::kBlockBytes + 1) * um_model::kBlockBytes;
      continue;
    }
    const std::uint64_t stop = std::min(end, allocation->end());
    std::memset(reinterpret_cast<void*>(at), kPoison, stop - at);
    at = stop;
  }
}

}  // namespace deepum::simgpu
