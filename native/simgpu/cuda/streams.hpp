// Contexts and streams, and who waits for whom on the default stream.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "cuda_api.hpp"
#include "engine.hpp"
#include "state.hpp"
#include "thread.hpp"

struct CUctx_st {
  int device = 0;
  unsigned flags = 0;
  bool primary = false;
  bool active = true;  // a primary context nobody retains is not
  // Of one that is not primary: cuCtxAttach adds one, the last cuCtxDetach ends it.
  int users = 1;
  std::uint64_t id = 0;
  CUstream legacy = nullptr;
  std::set<CUstream> streams;  // without the default one, with the threads' own
  // Behind the program's work on streams that it destroyed.
  std::vector<deepum::um_model::Event> left;
  // Batches of work on the legacy stream that others must wait for.
  std::uint64_t legacy_generation = 0;
  std::uint64_t legacy_recorded = 0;  // the generation its join event stands for
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::size_t limits[CU_LIMIT_MAX] = {};
};

struct CUstream_st {
  CUcontext context = nullptr;
  deepum::um_model::Stream id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t unique = 0;
  bool legacy = false;
  bool program_work = false;      // the program put something on it, not only a helper thread
  bool dirty = false;             // work that the legacy stream has not waited for
  std::uint64_t legacy_seen = 0;  // the legacy generation it has waited for
  deepum::um_model::Event join = 0;
  std::shared_ptr<deepum::simgpu::Capture> capture;
  std::vector<CUgraphNode> capture_tail;  // what the next captured node depends on
  // What its prefetches were about, since it was last seen idle.
  std::vector<deepum::um_model::Range> moving;

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct CUevent_st {
  CUcontext context = nullptr;
  deepum::um_model::Event id = 0;
  unsigned flags = 0;
  bool recorded = false;
  // Recorded inside a capture: stands for nodes, not for a time.
  std::shared_ptr<deepum::simgpu::Capture> capture;
  std::vector<CUgraphNode> capture_tail;
};

namespace deepum::simgpu {

// Within a _ptsz or _ptds entry point stream 0 is the calling thread's own.
struct PerThreadDefault {
  PerThreadDefault() { ++this_thread().per_thread_default; }
  ~PerThreadDefault() { --this_thread().per_thread_default; }
};

CUstream make_stream(State& state, CUcontext context, unsigned flags, int priority);
void remove_stream(State& state, CUstream stream);

// The stream a handle means in this call: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or one of the
// program's. nullptr: invalid.
CUstream resolve_stream(Call& call, CUstream handle);

// Makes the stream wait for what the default-stream rules say, and counts it as used. Before every
// piece of work that is not captured.
um_model::Stream enter(Call& call, CUstream stream);

// Waits for everything the program queued on the stream / on all streams of the context. Streams
// that carry only the moves of helper threads are not waited for: a program is never held up by
// speculation (docs/architecture.md).
CUresult finish_stream(Call& call, CUstream stream);
CUresult finish_context(Call& call, CUcontext context);
CUresult finish_device(Call& call, int device);
void finish_all_devices(Call& call);

// Before managed memory is given back: waits for prefetches of it that helper threads have queued.
// Discards are theirs to wait for: one that comes late hits what is allocated there next.
void finish_moves(Call& call, um_model::Range range);
void note_move(Call& call, CUstream stream, um_model::Range range);

// The context current in this thread, or nullptr; not checked for being alive.
CUcontext current_context() noexcept;
CUcontext primary_context(State& state, int device);

}  // namespace deepum::simgpu
