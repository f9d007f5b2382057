#include "streams.hpp"

#include <algorithm>

#include "graphs.hpp"
#include "pump.hpp"

namespace deepum::simgpu {
namespace {

void join(Call& call, CUstream from, CUstream into) {
  call.engine().record(call.host(), from->join, from->id);
  call.engine().wait(call.host(), into->id, from->join);
}

}  // namespace

CUstream make_stream(State& state, CUcontext context, unsigned flags, int priority) {
  auto* const stream = new CUstream_st;
  stream->context = context;
  stream->id = state.engine.add_stream(context->device);
  stream->join = state.engine.add_event();
  stream->flags = flags;
  stream->priority = std::clamp(priority, -5, 0);
  stream->unique = state.next_id++;
  context->streams.insert(stream);
  state.streams.insert(stream);
  return stream;
}

void remove_stream(State& state, CUstream stream) {
  const CUcontext context = stream->context;
  if (stream->blocking() && stream->dirty && !stream->legacy) {
    // Later work on the default stream must still come after what is queued here.
    state.engine.record(um_model::kProgram, stream->join, stream->id);
    state.engine.wait(um_model::kProgram, context->legacy->id, stream->join);
  }
  if (stream->capture != nullptr) abandon_capture(state, stream);
  if (stream->program_work && !stream->legacy) {
    state.engine.record(um_model::kProgram, stream->join, stream->id);
    constexpr std::size_t kMany = 64;
    if (context->left.size() >= kMany) {
      std::erase_if(context->left, [&](um_model::Event event) {
        const bool done = state.engine.query(um_model::kProgram, event);
        if (done) state.engine.remove_event(event);
        return done;
      });
    }
    context->left.push_back(stream->join);
  } else {
    state.engine.remove_event(stream->join);
  }
  state.engine.remove_stream(stream->id);
  context->streams.erase(stream);
  state.streams.erase(stream);
  delete stream;
}

CUstream resolve_stream(Call& call, CUstream handle) {
  State& state = call.state();
  Thread& thread = this_thread();
  const bool own =
      handle == CU_STREAM_PER_THREAD || (handle == nullptr && thread.per_thread_default > 0);
  if (own) {
    auto& [stream, unique] = thread.own_streams[call.context()];
    if (!alive(state.streams, stream) || stream->unique != unique) {
      stream = make_stream(state, call.context(), CU_STREAM_DEFAULT, 0);
      unique = stream->unique;
    }
    return stream;
  }
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return call.context()->legacy;
  return alive(state.streams, handle) ? handle : nullptr;
}

um_model::Stream enter(Call& call, CUstream stream) {
  const CUcontext context = stream->context;
  if (call.host() == um_model::kProgram) stream->program_work = true;
  if (stream->legacy) {
    for (CUstream other : context->streams) {
      if (!other->blocking() || !other->dirty) continue;
      join(call, other, stream);
      other->dirty = false;
    }
    ++context->legacy_generation;
  } else if (stream->blocking()) {
    if (stream->legacy_seen != context->legacy_generation) {
      const CUstream legacy = context->legacy;
      if (context->legacy_recorded != context->legacy_generation) {
        call.engine().record(call.host(), legacy->join, legacy->id);
        context->legacy_recorded = context->legacy_generation;
      }
      call.engine().wait(call.host(), stream->id, legacy->join);
      stream->legacy_seen = context->legacy_generation;
    }
    stream->dirty = true;
  }
  return stream->id;
}

CUresult finish_stream(Call& call, CUstream stream) {
  um_model::Engine& engine = call.engine();
  if (stream->legacy) enter(call, stream);  // it stands for all blocking streams
  const um_model::Stream id = stream->id;
  const um_model::Host host = call.host();
  return call.block([&] { engine.synchronise_stream(host, id); },
                    [&] { return engine.query_stream(host, id); });
}

CUresult finish_context(Call& call, CUcontext context) {
  um_model::Engine& engine = call.engine();
  std::vector<um_model::Stream> ids;
  for (const CUstream stream : context->streams) {
    if (stream->program_work) ids.push_back(stream->id);
  }
  if (context->legacy->program_work) ids.push_back(context->legacy->id);
  const std::vector<um_model::Event> left = context->left;
  const um_model::Host host = call.host();
  std::size_t at = 0, behind = 0;
  const CUresult result = call.block(
      [&] {
        for (; at < ids.size(); ++at) {
          engine.synchronise_stream(host, ids[at]);
          if (!engine.query_stream(host, ids[at])) return;
        }
        for (; behind < left.size(); ++behind) {
          engine.synchronise(host, left[behind]);
          if (!engine.query(host, left[behind])) return;
        }
      },
      [&] { return at == ids.size() && behind == left.size(); });
  if (result == CUDA_SUCCESS) {
    for (const um_model::Event event : left) {
      // Else another thread's wait did.
      if (std::erase(context->left, event) != 0) engine.remove_event(event);
    }
  }
  return result;
}

void note_move(Call& call, CUstream stream, um_model::Range range) {
  constexpr std::size_t kMany = 256;
  if (stream->moving.size() >= kMany && stream->moving.size() % kMany == 0 &&
      call.engine().query_stream(call.host(), stream->id))
    stream->moving.clear();
  stream->moving.push_back(range);
}

void finish_moves(Call& call, um_model::Range range) {
  for (const void* const pointer :
       std::vector<const void*>(call.state().streams.begin(), call.state().streams.end())) {
    const auto stream = static_cast<CUstream>(const_cast<void*>(pointer));
    const bool concerned =
        std::any_of(stream->moving.begin(), stream->moving.end(), [&](const um_model::Range& move) {
          return move.address < range.address + range.bytes &&
                 range.address < move.address + move.bytes;
        });
    if (!concerned) continue;
    finish_stream(call, stream);
    if (call.state().streams.contains(pointer)) stream->moving.clear();
  }
}

CUresult finish_device(Call& call, int device) {
  for (const void* const pointer :
       std::vector<const void*>(call.state().contexts.begin(), call.state().contexts.end())) {
    const auto context = static_cast<CUcontext>(const_cast<void*>(pointer));
    if (context->device != device || !context->active) continue;
    if (const CUresult error = finish_context(call, context); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

void finish_all_devices(Call& call) {
  for (std::size_t device = 0; device < call.state().devices.size(); ++device)
    finish_device(call, static_cast<int>(device));
}

}  // namespace deepum::simgpu
