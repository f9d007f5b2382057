#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "allocation_ledger.hpp"
#include "allocations.hpp"
#include "commands.hpp"
#include "contexts.hpp"
#include "discards.hpp"
#include "driver.hpp"
#include "handout_limits.hpp"
#include "live_session.hpp"
#include "marker_limits.hpp"
#include "memory_watch.hpp"
#include "message.hpp"
#include "operation_ranges.hpp"
#include "reach_daemon.hpp"
#include "relaxed.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {
namespace {

constexpr int kWelcomeMilliseconds = 5000;

// A bit for each device: a thread is to tell of it, or has,
std::atomic<std::uint32_t> claimed{0};
std::atomic<std::uint32_t> entered{0};  // and has.

struct Entry {
  std::mutex mutex;
  bool tried = false;
  Session* beginning = nullptr;  // while it looks for its daemon
};
alignas(Entry) unsigned char entry_memory[sizeof(Entry)];
[[gnu::constructor(101)]] void make_entry() { new (entry_memory) Entry; }
Entry& entry() noexcept { return *std::launder(reinterpret_cast<Entry*>(entry_memory)); }

constinit thread_local bool entering [[gnu::tls_model("initial-exec")]] = false;
constinit thread_local bool next_ungated [[gnu::tls_model("initial-exec")]] = false;

Session* the_session = nullptr;  // under entry().mutex until published; never destroyed

Session* begin_session() {
  const std::string directory = ledger_directory();
  if (directory.empty()) {
    say(Level::kWarning,
        "warning: runtime folder: cannot be used; set DEEPUM_RUNTIME_DIR to a folder of your own");
    return nullptr;
  }
  SharedMemory memory;
  if (!memory.create()) {
    say(Level::kWarning, "warning: shared memory: %s; going on without the daemon",
        std::strerror(errno));
    return nullptr;
  }
  Session* session = new (std::nothrow) Session(memory);
  if (!session) {
    memory.discard();
    return nullptr;
  }
  entry().beginning = session;
  std::string why = reach_daemon(directory, &session->connection, &session->starter);
  Hello answer = Hello::kFailed;
  if (why.empty()) {
    answer = session->connection.introduce(memory, kWelcomeMilliseconds, &why);
  }
  entry().beginning = nullptr;
  ::close(memory.memory_fd);
  memory.memory_fd = -1;
  if (answer == Hello::kWelcome && session->start()) {
    return session;
  }
  if (answer == Hello::kRefused) {
    say(Level::kWarning, "warning: daemon: refused this program: %s", why.c_str());
  } else {
    say(Level::kWarning,
        "warning: daemon: %s; going on with plain unified memory, without prefetching",
        why.empty() ? "no thread can be made" : why.c_str());
  }
  session->starter.reap_if_ended();
  delete session;
  memory.discard();
  return nullptr;
}

void await(const Discards::Awaited& awaited) noexcept {
  if (awaited.id == 0 || !driver().EventSynchronize) {
    return;
  }
  const Relaxed mode;
  if (current_context()) {
    driver().EventSynchronize(awaited.event);
  } else {
    const Elsewhere there(awaited.context);
    driver().EventSynchronize(awaited.event);
  }
}

// What is launched on the stream from here on comes after these discards, and so after all before
// them. Where the stream cannot be made to wait, the thread does.
void follow(const Discards::AwaitedOfLanes& all, CUstream stream) noexcept {
  for (const Discards::Awaited& awaited : all) {
    if (awaited.id != 0 && driver().StreamWaitEvent(stream, awaited.event, 0) != CUDA_SUCCESS) {
      await(awaited);
    }
  }
}

// False: ask again. The context is current and no primary context yet: NVIDIA's driver then answers
// with CONTEXT_IS_DESTROYED, and initialises it at the first call that needs it. Without the event
// nothing of the device would ever be moved, so that a driver that refuses to tell what is free is
// taken to have all of it free.
bool emit_device(CUdevice device) noexcept {
  const Driver& call = driver();
  std::size_t free = 0, total = 0;
  const CUresult result =
      call.MemGetInfo ? call.MemGetInfo(&free, &total) : CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return false;
  }
  if (call.DeviceTotalMem) {
    call.DeviceTotalMem(&total, device);
  }
  if (result != CUDA_SUCCESS) {
    say(Level::kWarning,
        "warning: GPU %d: cuMemGetInfo answers with error %d; all of its memory is taken to be "
        "free",
        device, static_cast<int>(result));
    free = total;
  }
  watch_memory(device, free, total);
  return true;
}

void leave_at_exit() { leave(); }

// Under the lock: the first device brings the session.
void start_once() noexcept try {
  if (entry().tried) {
    return;
  }
  entry().tried = true;
  the_session = begin_session();
  if (!the_session) {
    return;
  }
  // Registered after the driver's own handlers, since a context exists: runs before them.
  std::atexit(leave_at_exit);
  live.store(the_session, std::memory_order_release);
} catch (...) {
  say(Level::kWarning,
      "warning: daemon: out of memory; going on with plain unified memory, without prefetching");
}

}  // namespace

bool enter_device(CUdevice device, CUcontext context) noexcept {
  if (device < 0 || device >= DEEPUM_MAX_DEVICES || entering || settings().disabled) {
    return true;
  }
  if (entered.load(std::memory_order_acquire) >> device & 1) {
    [[likely]] return true;
  }
  entering = true;
  const int kept = errno;
  // Before the session, so that the mover ends before a profiler that is loaded here; and without
  // the lock, since it may do anything.
  OperationRanges::instance();
  const std::uint32_t bit = 1u << device;
  bool first = false, known = false;
  {
    const std::lock_guard lock(entry().mutex);
    start_once();
    first = context && (claimed.fetch_or(bit) & bit) == 0;
  }
  if (first) {
    Session* session = live.load(std::memory_order_acquire);
    if (session) {
      session->mover().enter_device(device, context);
    }
    known = !session || emit_device(device);
    if (known) {
      entered.fetch_or(bit);
    } else {
      claimed.fetch_and(~bit);
    }
    // Memory that another thread got while this one was connecting.
    if (session && known &&
        Allocations::instance().managed_bytes(static_cast<std::uint32_t>(device)) != 0) {
      Allocations::instance().announce();
    }
  }
  errno = kept;
  entering = false;
  return known;
}

bool has_session() noexcept { return live.load(std::memory_order_acquire) != nullptr; }

bool faults_wanted() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session || settings().faults == Faults::kOff) {
    return false;
  }
  return settings().faults == Faults::kOn || session->wants_faults();
}

bool reads_wanted() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session && session->wants_reads();
}

void begin_progress() noexcept try {
  if (Session* session = live.load(std::memory_order_acquire)) {
    const Relaxed mode;
    session->progress.begin(session->markers);
  }
} catch (...) {  // without memory for it nothing is told of that stream
  return;
}

void tell_progress() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    const Relaxed mode;
    session->progress.tell(session->markers, session->stalls);
  }
}

std::uint64_t emit(deepum_event_header* record) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session ? session->emit(record) : 0;
}

void before_execute(CUdevice, CUstream stream, std::uint32_t stream_id,
                    std::uint64_t sequence) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  const bool timed = session && sequence != 0 && session->wants_times() &&
                     (settings().lock_step || session->gates.used());
  if (timed) [[unlikely]] {
    session->stalls.before(stream, stream_id);
  }
  if (session && sequence != 0 && settings().lock_step) {
    // Nobody but this thread can do anything on its own default stream: the marker that the mover
    // may need comes first, what holds the launch comes after.
    const bool own = stream == CU_STREAM_PER_THREAD;
    if (own) {
      session->markers.flush(stream_id);
    }
    session->wait_for_decisions(sequence);
    for (std::size_t i = 0; i < kBringing.size() && own; ++i) {
      if (CUevent hold = session->mover().take_hold(stream_id, i)) {
        driver().StreamWaitEvent(stream, hold, 0);
      }
    }
  }
  // A stream that nothing was launched on yet was not among those that waited; without a session
  // nobody knows. It is made known first: whoever takes memory back from a discard in the meantime
  // either sees it, or has left the discard here to be followed.
  if (!session) [[unlikely]] {
    follow(Discards::instance().latest(), stream);
  } else if (!session->markers.knows(stream, stream_id)) [[unlikely]] {
    session->markers.enter(stream, stream_id);
    follow(Discards::instance().latest(), stream);
  }
  const bool ungated = std::exchange(next_ungated, false);
  if (session && sequence != 0 && session->gates.used() && !ungated) {
    session->wait_at_gate(stream, stream_id, sequence);
  }
  if (timed) [[unlikely]] {
    session->stalls.after(stream, stream_id, sequence);
  }
}

void after_execute(CUdevice device, CUstream stream, std::uint32_t stream_id) noexcept {
  Session* session = launching.session;
  launching.session = nullptr;
  if (!session || session != live.load(std::memory_order_relaxed)) {
    return;
  }
  std::uint32_t interval = settings().marker_interval;
  if (session->gates.used()) {
    interval = 1;
  } else if (session->wants_free_memory()) {
    interval = std::min(interval, mover::kMarkerIntervalOfReadings);
  }
  if (session->markers.launched(stream, stream_id, launching.sequence, interval,
                                launching.blocks)) {
    session->marker_recorded();
  }
  session->free_memory_after_launch(device);
}

void before_synchronise(std::uint32_t stream_id) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session) {
    return;
  }
  if (session->markers.flush(stream_id)) {
    session->marker_recorded();
  }
  // What can go on while the program blocks has to be under way before it does.
  if (settings().lock_step && last_sequence != 0) {
    session->wait_for_decisions(last_sequence);
  }
}

bool waits_at_gates() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session && session->gates.used();
}

void before_locked_wait() noexcept {
  if (Session* session = live.load(std::memory_order_acquire); session && session->gates.used()) {
    session->gates.settle();
  }
}

void next_launch_ungated() noexcept { next_ungated = true; }

void use_after_discards(std::uint64_t address, std::uint64_t bytes) noexcept {
  const Discards::AwaitedOfLanes all = Discards::instance().latest(address, bytes);
  for (std::size_t device = 0; device < all.size(); ++device) {
    const Discards::Awaited& awaited = all[device];
    if (awaited.id == 0) {
      continue;
    }
    Session* session = live.load(std::memory_order_acquire);
    if (session && session->markers.wait_on_all(awaited.event)) {
      Discards::instance().ordered(device, awaited.id);
    } else {
      await(awaited);  // then it is done, for whoever comes
    }
  }
}

void before_handout(std::uint64_t bytes) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (session && bytes >= mover::kAwaitedHandout && session->gates.used()) {
    session->wait_for_mover();
  }
}

void wait_for_discards(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::ranges::for_each(Discards::instance().latest(address, bytes), await);
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->mover().wait_for_advice(address, bytes);
  }
  Discards::instance().forget(address, bytes);
}

void before_graph(CUstream stream) noexcept { follow(Discards::instance().forbid(), stream); }

void handle_refused() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->handle_refused();
  }
}

void allocation_refused() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->allocation_refused();
  }
}

void allocatable(std::uint64_t bytes) noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->allocatable(bytes);
  }
}

void before_value_wait() noexcept {
  Discards::instance().forbid();
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->gates.end();
  }
}

void stream_destroyed(CUstream stream, std::uint32_t stream_id) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session) {
    return;
  }
  session->markers.destroyed(stream, stream_id);
  session->marker_recorded();
}

// Its streams of ours end with it: whoever uses the memory from then on could wait for them no
// more.
void context_ending(CUcontext context) noexcept {
  std::ranges::for_each(Discards::instance().close_context(context), await);
  if (Session* session = live.load(std::memory_order_acquire); session && session->gates.used()) {
    session->gates.end();  // the driver waits for what lies behind them
  }
}

void context_stays(CUcontext context) noexcept { Discards::instance().reopen_context(context); }

void context_destroyed(CUcontext context) noexcept {
  Discards::instance().forget_context(context);
  Session* session = live.load(std::memory_order_acquire);
  if (!session || !context) {
    return;
  }
  session->markers.context_destroyed(context);
  const std::uint32_t left = session->mover().context_destroyed(context);
  entered.fetch_and(~left);
  claimed.fetch_and(~left);
}

void leave() noexcept {
  if (Session* session = std::exchange(the_session, nullptr)) {
    session->leave();
  }
}

// Before its first context a parent leaves nothing behind, and the child may have a session of its
// own.
void abandon_in_child() noexcept {
  live.store(nullptr);
  launching.session = nullptr;
  entering = false;
  Discards::instance().abandon_in_child();
  const bool held = !entry().mutex.try_lock();  // a thread that is not here was connecting
  new (&entry().mutex) std::mutex;
  if (held) {
    entry().tried = true;
  }
  if (Session* session = std::exchange(entry().beginning, nullptr)) {
    session->close_in_child(true);
  }
  if (Session* session = std::exchange(the_session, nullptr)) {
    session->close_in_child(false);
  }
}

}  // namespace deepum::runtime
