// native/runtime on top of a driver that only writes down what it is asked. Driven from Python
// (tests/runtime/client.py).
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "contexts.hpp"
#include "discard_order.hpp"
#include "driver.hpp"
#include "launches.hpp"
#include "session.hpp"
#include "shim_settings.hpp"

using namespace deepum::runtime;

namespace {

std::mutex mutex;
std::string text;
std::map<void*, std::string> names;
int movers = 0, events = 0;
std::set<std::string> recorded_on_program;
std::atomic<bool> complete{true};
std::atomic<int> prefetch_error{0}, event_error{0}, wait_error{0}, push_error{0}, host_error{0},
    prefetch_delay_ms{0}, discard_delay_ms{0}, await_delay_ms{0}, discard_error{0};
std::atomic<int> register_error{0}, gate_error{0}, gate_delay_ms{0};
std::atomic<bool> writes_values{true};
std::uint64_t* words = nullptr;  // of gates
std::atomic<bool> capturing{false};
std::atomic<long> queries{0};
std::atomic<unsigned long> complete_events{~0ul}, free_memory{15ul << 30};
std::atomic<int> device_of_context{0};
std::atomic<int> memory_error{0}, memory_errors{0};  // the next so many answers
std::atomic<bool> memory_waits{false};               // no answer yet,
std::atomic<int> memory_asked{0};                    // and questions so far
std::atomic<void*> context{reinterpret_cast<void*>(0xc0)};
thread_local void* current = nullptr;
thread_local std::vector<void*> pushed;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
pthread_t program;

bool on_program_thread() { return pthread_equal(pthread_self(), program); }

template <typename... A>
void note(const char* format, A... arguments) {
  char line[256];
  std::snprintf(line, sizeof line, format, arguments...);
  const std::lock_guard lock(mutex);
  text += line;
  text += '\n';
}

std::string name(void* handle) {
  const std::lock_guard lock(mutex);
  const auto found = names.find(handle);
  return found == names.end() ? "?" : found->second;
}

std::string word(CUdeviceptr at) {
  const std::uint64_t place = (at - reinterpret_cast<CUdeviceptr>(words)) / 64;
  return "w" + std::to_string(place % 64) + (place < 64 ? "" : "." + std::to_string(place / 64));
}

constexpr unsigned kDefault = 99;  // the current context's default stream

CUstream program_stream(unsigned id) {
  auto* handle =
      id == kDefault ? CU_STREAM_LEGACY : reinterpret_cast<CUstream>(0x10000ul + 16 * id);
  const std::lock_guard lock(mutex);
  names[handle] = "s" + std::to_string(id);
  return handle;
}

// Another thread of the program may capture, and this call would spoil that.
void check_relaxed(const char* what) {
  if (capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) note("%s not relaxed", what);
}

// Of our own threads only: what the mover does in another capture mode than RELAXED would break a
// program's capture.
void check_mode(const char* what) {
  if (!on_program_thread()) check_relaxed(what);
}

std::string place(CUdeviceptr address, std::size_t bytes) {
  char line[96];
  std::snprintf(line, sizeof line, "%llu+%zu", address >> 20, bytes >> 20);
  return line;
}

std::string where(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ? "host"
                                                    : "device " + std::to_string(location.id);
}

void fill_driver() {
  Driver& d = driver();
  d.CtxGetCurrent = [](CUcontext* out) {
    *out = static_cast<CUcontext>(on_program_thread() ? context.load() : current);
    return CUDA_SUCCESS;
  };
  d.CtxSetCurrent = [](CUcontext to) {
    current = to;
    return CUDA_SUCCESS;
  };
  // Pushes are noted: nobody pushes the context that is current. The program's threads have one in
  // common.
  d.CtxPushCurrent = [](CUcontext to) {
    if (push_error != 0) return static_cast<CUresult>(push_error.load());
    note("push %lx", reinterpret_cast<unsigned long>(to));
    pushed.push_back(on_program_thread() ? context.exchange(to) : std::exchange(current, to));
    return CUDA_SUCCESS;
  };
  d.CtxPopCurrent = [](CUcontext*) {
    note("pop");
    on_program_thread() ? context.store(pushed.back()) : static_cast<void>(current = pushed.back());
    pushed.pop_back();
    return CUDA_SUCCESS;
  };
  d.StreamCreate = [](CUstream* out, unsigned flags) {
    check_mode("stream create");
    std::string made;
    {
      const std::lock_guard lock(mutex);
      *out = reinterpret_cast<CUstream>(0x20000ul + 16ul * static_cast<unsigned long>(++movers));
      made = names[*out] = "m" + std::to_string(movers);
    }
    if (flags != CU_STREAM_NON_BLOCKING) note("%s is blocking", made.c_str());
    return CUDA_SUCCESS;
  };
  d.EventCreate = [](CUevent* out, unsigned) {
    check_relaxed("event create");
    const std::lock_guard lock(mutex);
    *out = reinterpret_cast<CUevent>(0x30000ul + 16ul * static_cast<unsigned long>(++events));
    names[*out] = "e" + std::to_string(events);
    return CUDA_SUCCESS;
  };
  d.StreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
  d.EventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  d.EventRecord = [](CUevent event, CUstream stream) {
    if (event_error != 0) return static_cast<CUresult>(event_error.load());
    note("record %s %s", name(event).c_str(), name(stream).c_str());
    return CUDA_SUCCESS;
  };
  d.EventSynchronize = [](CUevent event) {
    check_relaxed("await");
    if (await_delay_ms) usleep(static_cast<unsigned>(1000 * await_delay_ms));
    note("await %s", name(event).c_str());
    return CUDA_SUCCESS;
  };
  d.EventQuery = [](CUevent event) {
    check_relaxed("query");
    ++queries;
    const auto ordinal = (reinterpret_cast<unsigned long>(event) - 0x30000ul) / 16;
    return complete && ordinal <= complete_events ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  d.StreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    check_mode("wait");
    if (wait_error != 0 && name(stream)[0] == 's') return static_cast<CUresult>(wait_error.load());
    note("wait %s %s", name(stream).c_str(), name(event).c_str());
    return CUDA_SUCCESS;
  };
  d.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* out) {
    *out = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  d.ThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
  };
  // Words of gates are named by their stream id; the first of each epoch's lies 4096 bytes behind
  // the one before it.
  d.MemHostRegister = [](void* at, std::size_t bytes, unsigned flags) {
    check_mode("register");
    if (register_error != 0) return static_cast<CUresult>(register_error.load());
    words = static_cast<std::uint64_t*>(at);
    note("register %zu %x", bytes, flags);
    return CUDA_SUCCESS;
  };
  d.MemHostGetDevicePointer = [](CUdeviceptr* out, void* at, unsigned) {
    *out = reinterpret_cast<CUdeviceptr>(at);
    return CUDA_SUCCESS;
  };
  d.StreamWaitValue64 = [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
    check_relaxed("wait value");
    if (gate_delay_ms) usleep(static_cast<unsigned>(1000 * gate_delay_ms));
    if (gate_error != 0) return static_cast<CUresult>(gate_error.load());
    note("gate %s %s >= %llu%s", name(stream).c_str(), word(at).c_str(),
         static_cast<unsigned long long>(value),
         flags == CU_STREAM_WAIT_VALUE_GEQ ? "" : " otherwise");
    return CUDA_SUCCESS;
  };
  // At once, as if all that is on the stream had been done.
  d.StreamWriteValue64 = [](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
    check_mode("write value");
    note("open %s %s %llu", name(stream).c_str(), word(at).c_str(),
         static_cast<unsigned long long>(value));
    if (writes_values)
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), value, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
  };
  d.MemGetInfo = [](std::size_t* free, std::size_t* total) {
    ++memory_asked;
    while (memory_waits) usleep(100);
    if (memory_errors > 0 && memory_errors-- > 0) return static_cast<CUresult>(memory_error.load());
    *free = free_memory;
    *total = 16ul << 30;
    return CUDA_SUCCESS;
  };
  d.CtxGetDevice = [](CUdevice* device) {
    *device = device_of_context;
    return CUDA_SUCCESS;
  };
  d.DeviceTotalMem = [](std::size_t* total, CUdevice) {
    *total = 16ul << 30;
    return CUDA_SUCCESS;
  };
  d.MemPrefetchAsync = [](CUdeviceptr address, std::size_t bytes, CUdevice to, CUstream stream) {
    note("prefetch1 %s %s %d", name(stream).c_str(), place(address, bytes).c_str(), to);
    return static_cast<CUresult>(prefetch_error.load());
  };
  d.MemPrefetchAsync_v2 = [](CUdeviceptr address, std::size_t bytes, CUmemLocation to, unsigned,
                             CUstream stream) {
    check_mode("prefetch");
    if (current != context.load()) note("prefetch without context");
    if (prefetch_delay_ms) usleep(static_cast<unsigned>(1000 * prefetch_delay_ms));
    note("prefetch %s %s %s", name(stream).c_str(), place(address, bytes).c_str(),
         where(to).c_str());
    return static_cast<CUresult>(prefetch_error.load());
  };
  // At once, on a thread of the driver's.
  d.LaunchHostFunc = [](CUstream stream, CUhostFn function, void* data) {
    if (host_error != 0) return static_cast<CUresult>(host_error.load());
    note("stands %s", name(stream).c_str());
    std::thread([function, data] { function(data); }).join();
    note("goes on");
    return CUDA_SUCCESS;
  };
  d.StreamQuery = [](CUstream) {
    check_relaxed("stream query");
    return complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  d.MemAdvise_v2 = [](CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                      CUmemLocation to) {
    check_mode("advise");
    if (!on_program_thread() && current != context.load()) note("advice without context");
    note("advise %s %d %s", place(address, bytes).c_str(), static_cast<int>(advice),
         where(to).c_str());
    return CUDA_SUCCESS;
  };
}

CUresult batch(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count, CUmemLocation* to,
               std::size_t*, std::size_t, unsigned long long, CUstream stream) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += " " + place(addresses[i], sizes[i]);
  note("batch %s%s %s", name(stream).c_str(), all.c_str(), where(*to).c_str());
  return CUDA_SUCCESS;
}

CUresult discard(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count, CUmemLocation* to,
                 std::size_t*, std::size_t, unsigned long long, CUstream stream) {
  check_mode("discard");
  if (discard_delay_ms) usleep(static_cast<unsigned>(1000 * discard_delay_ms));
  for (std::size_t i = 0; i < count; ++i)
    note("discard %s %s %s", name(stream).c_str(), place(addresses[i], sizes[i]).c_str(),
         where(*to).c_str());
  return static_cast<CUresult>(prefetch_error.load());
}

CUresult bare_discard(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                      unsigned long long, CUstream stream) {
  check_mode("discard");
  for (std::size_t i = 0; i < count; ++i)
    note("discard %s %s", name(stream).c_str(), place(addresses[i], sizes[i]).c_str());
  return static_cast<CUresult>(discard_error.load());
}

std::uint64_t emit_execute(unsigned stream, std::uint64_t hash, unsigned ranges,
                           std::uint64_t range) {
  std::vector<std::uint64_t> words(sizeof(deepum_execute_event) / 8 + ranges, range);
  auto* event = reinterpret_cast<deepum_execute_event*>(words.data());
  std::memset(event, 0, sizeof *event);
  event->header.words = static_cast<std::uint16_t>(words.size());
  event->header.kind = DEEPUM_EVENT_EXECUTE;
  event->execution_hash = hash;
  event->stream = stream;
  event->unknown_ranges = static_cast<std::uint16_t>(ranges);
  return emit(&event->header);
}

[[gnu::constructor]] void load() {
  program = pthread_self();
  fill_driver();
  pthread_atfork(nullptr, nullptr, [] {
    abandon_in_child();
    Allocations::instance().abandon_in_child();
  });
}

}  // namespace

extern "C" {

int h_enter(int device) { return enter_device(device, current_context()); }

// A launch as the hooks make it. Returns its sequence. handle: the stream's number, which differs
// from the id only on the shared id.
std::uint64_t h_execute(unsigned stream, std::uint64_t hash, int refused, unsigned handle,
                        unsigned blocks) {
  const CUstream at = program_stream(handle);
  const std::uint64_t sequence = emit_execute(stream, hash, blocks != 0 ? 1 : 0, blocks);
  before_execute(0, at, stream, sequence);
  note("launch %s", name(at).c_str());
  if (!refused) after_execute(0, at, stream);
  return sequence;
}

std::uint64_t h_emit_execute(unsigned stream, std::uint64_t hash, unsigned ranges) {
  return emit_execute(stream, hash, ranges, hash);
}

void h_synchronise(unsigned stream) {
  deepum_stream_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_SYNCHRONISE;
  event.stream = stream;
  emit(&event.header);
  before_synchronise(stream);
  note("synchronise");
}

void h_destroy(unsigned stream) { stream_destroyed(program_stream(stream), stream); }
void h_destroy_as(unsigned stream, unsigned handle) {
  stream_destroyed(program_stream(handle), stream);
}
void h_context_destroyed() { context_destroyed(static_cast<CUcontext>(context.load())); }
void h_context_ending(std::uint64_t value) { context_ending(reinterpret_cast<CUcontext>(value)); }
void h_context_stays(std::uint64_t value) { context_stays(reinterpret_cast<CUcontext>(value)); }
void h_set_context(std::uint64_t value) { context = reinterpret_cast<void*>(value); }
void h_set_thread_context() { current = context; }  // of a thread that is not the program's first
void h_allocate(std::uint64_t base, std::uint64_t bytes) {
  Allocations::instance().add(base, bytes, 0, true, false);
}
void h_free(std::uint64_t base) { Allocations::instance().remove(base); }
void h_block(std::uint64_t base, std::uint64_t bytes) {
  Allocations::instance().block_active(base, bytes, bytes, bytes);
}
void h_unblock(std::uint64_t base, std::uint64_t bytes) {
  Allocations::instance().block_inactive(base, bytes, 0, bytes);
}
void h_discards() { driver().MemDiscardAndPrefetchBatchAsync = discard; }
void h_no_discards() { driver().MemDiscardAndPrefetchBatchAsync = nullptr; }
void h_bare_discards() { driver().MemDiscardBatchAsync = bare_discard; }
void h_discard_error(int error) { discard_error = error; }
void h_locked_wait() { before_locked_wait(); }
int h_waits_at_gates() { return waits_at_gates(); }
void h_next_launch_ungated() { next_launch_ungated(); }
void h_value_wait(unsigned) { before_value_wait(); }
void h_graph(unsigned stream) { before_graph(program_stream(stream)); }
// Observed faults are looked for.
void h_look() {
  begin_progress();
  tell_progress();
}
void h_leave() { leave(); }
void h_complete(int done) { complete = done != 0; }
void h_complete_events(unsigned count) { complete_events = count; }  // the first so many
void h_memory_errors(int error, int answers) {
  memory_error = error;
  memory_errors = answers;
}
void h_memory_waits(int waits) { memory_waits = waits != 0; }
int h_memory_asked() { return memory_asked; }
void h_free_memory(std::uint64_t mebibytes) { free_memory = mebibytes << 20; }
void h_device_of_context(int device) { device_of_context = device; }
void h_read_free_memory() { read_free_memory(0); }
void h_capturing(int now) { capturing = now != 0; }
void h_prefetch_error(int error) { prefetch_error = error; }
void h_event_error(int error) { event_error = error; }
void h_wait_error(int error) { wait_error = error; }  // of the program's streams only
void h_push_error(int error) { push_error = error; }
void h_host_error(int error) { host_error = error; }
void h_prefetch_delay(int milliseconds) { prefetch_delay_ms = milliseconds; }
void h_discard_delay(int milliseconds) { discard_delay_ms = milliseconds; }
void h_await_delay(int milliseconds) { await_delay_ms = milliseconds; }
void h_register_error(int error) { register_error = error; }
void h_gate_error(int error) { gate_error = error; }
void h_writes_values(int writes) { writes_values = writes != 0; }
void h_gate_delay(int milliseconds) { gate_delay_ms = milliseconds; }
void h_write_word(unsigned id, unsigned value) {
  __atomic_store_n(&words[8 * id], value, __ATOMIC_SEQ_CST);
}
// 1: all words of the first epoch are open for good.
int h_all_open() {
  for (unsigned id = 0; id < 64; ++id)
    if (__atomic_load_n(&words[8 * id], __ATOMIC_SEQ_CST) != INT64_MAX) return 0;
  return 1;
}
void h_batches() { driver().MemPrefetchBatchAsync = batch; }
void h_only_first_form() { driver().MemPrefetchAsync_v2 = nullptr; }
long h_queries() { return queries; }

std::size_t h_calls(char* out, std::size_t most) {
  const std::lock_guard lock(mutex);
  const std::size_t bytes = text.size() < most ? text.size() : most;
  std::memcpy(out, text.data(), bytes);
  text.clear();
  return bytes;
}

// Each thread launches on a stream of its own; hash = thread << 32 | ordinal, and as many words
// more as tell a torn record.
void h_threads(unsigned threads, unsigned launches) {
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([t, launches] {
      for (unsigned i = 0; i < launches; ++i) {
        while (emit_execute(t, std::uint64_t{t} << 32 | i, i % 23, std::uint64_t{t} << 32 | i) == 0)
          usleep(100);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
}

// Each thread launches once on a stream of its own, all of which share the last id; then the
// program waits, and the streams end. How many of them had no marker when it waited, over all
// rounds.
unsigned h_unmarked_of_shared(unsigned threads, unsigned rounds) {
  unsigned unmarked = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        driver().CtxSetCurrent(static_cast<CUcontext>(context.load()));
        const CUstream at = program_stream(100 + t);
        const std::uint64_t sequence = emit_execute(DEEPUM_ALL_STREAMS, 7, 0, 0);
        for (++ready; ready < threads;) std::this_thread::yield();
        before_execute(0, at, DEEPUM_ALL_STREAMS, sequence);
        after_execute(0, at, DEEPUM_ALL_STREAMS);
      });
    }
    for (std::thread& thread : all) thread.join();
    before_synchronise(DEEPUM_ALL_STREAMS);
    for (unsigned t = 0; t < threads; ++t) {
      {
        const std::lock_guard lock(mutex);
        unmarked += text.find(" s" + std::to_string(100 + t) + "\n") == std::string::npos;
      }
      stream_destroyed(program_stream(100 + t), DEEPUM_ALL_STREAMS);
    }
    const std::lock_guard lock(mutex);
    text.clear();
  }
  return unmarked;
}

int h_settings(std::uint64_t* out) {
  const ShimSettings& s = settings();
  const std::uint64_t all[] = {
      s.disabled,          s.lock_step,        static_cast<std::uint64_t>(s.log_level),
      s.managed_limit,     s.gpu_memory.of(0), s.host_memory,
      s.managed_threshold, s.marker_interval,  s.handover_bytes,
      s.gpu_memory.of(1)};
  std::memcpy(out, all, sizeof all);
  return sizeof all / 8;
}
}
