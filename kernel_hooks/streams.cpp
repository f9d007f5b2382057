#include "streams.hpp"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "contexts.hpp"
#include "devices.hpp"
#include "driver.hpp"
#include "ended_work.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "launches.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "session.hpp"

namespace deepum::hooks {
namespace {

constexpr std::uint32_t kShared = DEEPUM_MAX_STREAMS - 1;

struct Created {
  CUcontext context;
  int device;
};

struct Streams {
  ForkableMutex mutex;
  std::uint64_t keys[kShared] = {};          // by id; 0: free
  CUcontext contexts[kShared] = {};          // by id: of the stream
  std::uint64_t incarnations[kShared] = {};  // by id: of the stream that has it, or had it last
  std::uint64_t latest_incarnation = 0;
  std::unordered_map<CUstream, Created> created;
  std::set<CUstream> captures;
};
Streams& known_streams() noexcept { return immortal<Streams>(); }
std::atomic<std::uint32_t> ids_epoch{1};  // rises when an id is freed
std::atomic<int> captures_under_way{0};
std::atomic<bool> unknowable{false};
std::atomic<int> synchronising{0};  // threads inside synchronise_program_streams
std::atomic<std::uint32_t> threads_with_own_stream{0};

struct Cached {
  std::uint64_t key;
  std::uint32_t epoch;
  std::uint32_t id;
  int device;
  std::uint64_t incarnation;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Cached cache[8] = {};

// A thread has a default stream of its own in each context. They end with the thread, or with their
// context.
void free_key(std::uint64_t key, CUstream handle) noexcept;
class OwnStreams {
 public:
  bool any() const noexcept { return used_ != 0; }

  std::uint64_t key(CUcontext context) noexcept {
    static std::atomic<std::uint64_t> serials{0};
    for (const Own& own : owns_) {
      if (own.context == context) {
        return own.key;
      }
    }
    if (used_ == 0) {
      threads_with_own_stream.fetch_add(1);
    }
    Own& own = owns_[used_++ % kMost];
    if (own.key) {
      free_key(own.key, CU_STREAM_PER_THREAD);
    }
    own = {context, 2 | (serials.fetch_add(1) + 1) << 8};
    return own.key;
  }

  void forget(CUcontext context) noexcept {
    for (Own& own : owns_) {
      if (own.context == context) {
        own = {};
      }
    }
  }

  ~OwnStreams() {
    for (const Own& own : owns_) {
      if (own.key) {
        free_key(own.key, CU_STREAM_PER_THREAD);
      }
    }
    if (used_ != 0) {
      threads_with_own_stream.fetch_sub(1);
    }
  }

 private:
  static constexpr std::size_t kMost = 4;
  struct Own {
    CUcontext context = nullptr;
    std::uint64_t key = 0;
  };
  Own owns_[kMost];
  std::size_t used_ = 0;
};
thread_local OwnStreams own_streams;

// Handles are aligned pointers, and so are contexts; the two default streams, whose handles are the
// same in each context, get keys that cannot be a handle.
std::uint64_t key_of(CUstream stream, CUcontext context) noexcept {
  if (stream == CU_STREAM_LEGACY) {
    return 1 | reinterpret_cast<std::uint64_t>(context);
  }
  if (stream == CU_STREAM_PER_THREAD) {
    return own_streams.key(context);
  }
  return reinterpret_cast<std::uint64_t>(stream);
}

// The id is nobody's from here on, and the core forgets what it knows of it.
void release_id(std::uint32_t id) noexcept {
  deepum_stream_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_STREAM_DESTROYED;
  event.stream = id;
  runtime::emit(&event.header);
  const std::lock_guard lock(known_streams().mutex);
  known_streams().keys[id] = 0;
  known_streams().contexts[id] = nullptr;
  ids_epoch.fetch_add(1, std::memory_order_acq_rel);
}

void free_key(std::uint64_t key, CUstream handle) noexcept {
  std::uint32_t id = kShared;
  {
    const std::lock_guard lock(known_streams().mutex);
    for (std::uint32_t i = 0; i < kShared; ++i) {
      if (known_streams().keys[i] == key) {
        id = i;
      }
    }
  }
  // Of the many that share an id it finds the one by its handle.
  runtime::stream_destroyed(handle, id);
  if (id != kShared) {  // else never used, or one of those
    release_id(id);
  }
}

[[gnu::noinline]] Cached slow(std::uint64_t key, CUstream handle) noexcept {
  const int here = current_device();
  CUcontext context = current_context();
  const std::lock_guard lock(known_streams().mutex);
  Cached found{key, ids_epoch.load(std::memory_order_acquire), kShared, here, 0};
  if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    const auto created = known_streams().created.find(handle);
    if (created != known_streams().created.end()) {
      found.device = created->second.device;
      context = created->second.context;
    } else {
      unknowable.store(true, std::memory_order_relaxed);
    }
  }
  std::uint32_t free = kShared;
  for (std::uint32_t id = 0; id < kShared; ++id) {
    if (known_streams().keys[id] == key) {
      found.id = id;
      found.incarnation = known_streams().incarnations[id];
      return found;
    }
    if (known_streams().keys[id] == 0 && free == kShared) {
      free = id;
    }
  }
  if (free < kShared) {
    known_streams().keys[free] = key;
    known_streams().contexts[free] = context;
    known_streams().incarnations[free] = found.incarnation = ++known_streams().latest_incarnation;
  }
  found.id = free;
  return found;
}

// Waits for the context are for the work of a stream that has ended, too.
void note_work_left(CUstream stream) noexcept {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(known_streams().mutex);
    const auto created = known_streams().created.find(stream);
    if (created == known_streams().created.end() || known_streams().captures.contains(stream)) {
      return;
    }
    context = created->second.context;
  }
  if (!leave_work_behind(stream, context)) {
    streams_unknowable();
  }
}

}  // namespace

StreamRef stream_of(CUstream stream, bool per_thread) noexcept {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(stream);
  if (key <= 2) {
    if (!stream) {
      stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    }
    const int device = current_device();
    if (device < 0) {
      return {stream, kShared, -1, 0};
    }
    key = key_of(stream, current_context());
  }
  Cached& cached = cache[(key ^ key >> 8) * 0x9e3779b97f4a7c15ull >> 61];
  if (cached.key != key || cached.epoch != ids_epoch.load(std::memory_order_acquire)) [[unlikely]] {
    cached = slow(key, stream);
  }
  return {stream, cached.id, cached.device, cached.incarnation};
}

void stream_created(CUstream stream) noexcept try {
  const Created created{current_context(), current_device()};
  const std::lock_guard lock(known_streams().mutex);
  known_streams().created[stream] = created;
} catch (...) {
  streams_unknowable();
}

void stream_ends(CUstream stream) noexcept {
  if (reinterpret_cast<std::uint64_t>(stream) <= 2) {
    return;
  }
  free_key(reinterpret_cast<std::uint64_t>(stream), stream);
  note_work_left(stream);
  {
    const std::lock_guard lock(known_streams().mutex);
    known_streams().created.erase(stream);
    if (known_streams().captures.erase(stream)) {
      captures_under_way.store(static_cast<int>(known_streams().captures.size()));
    }
  }
  // Another thread may be waiting for this very handle; none finds it from here on. Bounded: a
  // program must never hang on us.
  for (int tries = 0; tries < 10000 && synchronising.load() != 0; ++tries) {
    usleep(1000);
  }
}

void forget_streams_of(CUcontext context) noexcept {
  std::uint64_t ids = 0;
  {
    const std::lock_guard lock(known_streams().mutex);
    std::erase_if(known_streams().created,
                  [&](const auto& each) { return each.second.context == context; });
    for (std::uint32_t id = 0; id < kShared; ++id) {
      ids |= static_cast<std::uint64_t>(known_streams().keys[id] != 0 &&
                                        known_streams().contexts[id] == context)
             << id;
    }
  }
  for (; ids != 0; ids &= ids - 1) {
    release_id(static_cast<std::uint32_t>(__builtin_ctzll(ids)));
  }
  own_streams.forget(context);
  forget_work_left(context);
}

void streams_unknowable() noexcept { unknowable.store(true, std::memory_order_relaxed); }

bool synchronise_program_streams(CUresult* result) noexcept try {
  if (unknowable.load() || several_contexts() || captures_under_way.load() != 0) {
    return false;
  }
  if (threads_with_own_stream.load() > (own_streams.any() ? 1u : 0u)) {
    return false;
  }
  const CUcontext context = current_context();
  const auto& synchronise = real<false>().cuStreamSynchronize;
  if (!context || !ready(synchronise)) {
    return false;
  }
  std::vector<CUstream> streams{CU_STREAM_LEGACY};
  struct Counted {
    Counted() { synchronising.fetch_add(1); }
    ~Counted() { synchronising.fetch_sub(1); }
  } counted;
  if (own_streams.any()) {
    streams.push_back(CU_STREAM_PER_THREAD);
  }
  {
    const std::lock_guard lock(known_streams().mutex);
    for (const auto& [stream, created] : known_streams().created) {
      if (created.context == context) {
        streams.push_back(stream);
      }
    }
  }
  *result = CUDA_SUCCESS;
  for (const CUstream stream : streams) {
    const CUresult answer = forward(synchronise, stream);
    if (answer != CUDA_SUCCESS && *result == CUDA_SUCCESS) {
      *result = answer;
    }
  }
  return work_left_is_done(context, runtime::driver().EventSynchronize) || *result != CUDA_SUCCESS;
} catch (...) {
  return false;
}

bool capturing(const StreamRef& stream) noexcept {
  if (captures_under_way.load(std::memory_order_relaxed) == 0) [[likely]] {
    return false;
  }
  Inside guard;
  return runtime::is_capturing(stream.handle);
}

bool any_capture() noexcept { return captures_under_way.load(std::memory_order_relaxed) != 0; }

void capture_began(const StreamRef& stream) noexcept try {
  const std::lock_guard lock(known_streams().mutex);
  known_streams().captures.insert(stream.handle);
  captures_under_way.store(static_cast<int>(known_streams().captures.size()));
} catch (...) {
  captures_under_way.fetch_add(1);
}

void capture_ended(const StreamRef& stream) noexcept {
  const std::lock_guard lock(known_streams().mutex);
  known_streams().captures.erase(stream.handle);
  captures_under_way.store(static_cast<int>(known_streams().captures.size()));
}

void abandon_streams_in_child() noexcept {
  synchronising.store(0);  // those threads are not here
  const bool ours = known_streams().mutex.renew(), left = abandon_work_left_in_child();
  if (!ours || !left) {
    unknowable.store(true);
  }
}

}  // namespace deepum::hooks
