// What the driver keeps for each thread of the program.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cuda_api.hpp"
#include "engine.hpp"

namespace deepum::simgpu {

enum class ThreadKind { unknown, program, helper };

// A thread's own default stream in a context. Its number tells whether it still is: a reset of the
// context ends it, and the next stream may come to lie where it was.
struct OwnStream {
  CUstream stream = nullptr;
  std::uint64_t unique = 0;
};

struct Thread {
  std::vector<CUcontext> contexts;  // current is the last; a null entry means none
  ThreadKind kind = ThreadKind::unknown;
  um_model::Host helper = um_model::kProgram;  // of a helper thread
  // Of a helper thread, since it last asked for something else.
  int polls_in_vain = 0;
  bool in_host_function = false;  // the driver may not be called then
  // > 0: stream 0 means this thread's own (inside a _ptsz or _ptds call).
  int per_thread_default = 0;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<CUcontext, OwnStream> own_streams;
};

// Freed when the thread ends. Usable until the process is gone, in exit handlers too.
Thread& this_thread() noexcept;

}  // namespace deepum::simgpu
