// How the session begins, with the first context of a device, and how it ends: in order, with a
// context, or in the child of a fork.
#include <unistd.h>

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
#include "discards.hpp"
#include "driver.hpp"
#include "live_session.hpp"
#include "memory_watch.hpp"
#include "message.hpp"
#include "operation_ranges.hpp"
#include "reach_daemon.hpp"
#include "session.hpp"
#include "shim_settings.hpp"

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
