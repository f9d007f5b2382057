// Events: points in streams, with a time in virtual nanoseconds.
#include <cmath>

#include "graphs.hpp"
#include "pump.hpp"
#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

CUresult wait_for(Call& call, CUevent event) {
  um_model::Engine& engine = call.engine();
  const um_model::Event id = event->id;
  const um_model::Host host = call.host();
  return call.block([&] { engine.synchronise(host, id); }, [&] { return engine.query(host, id); });
}
}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  const Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr unsigned kKnown =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  const bool timed_for_others =
      (Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0;
  if ((Flags & ~kKnown) != 0 || timed_for_others) return CUDA_ERROR_INVALID_VALUE;
  auto* const event = new CUevent_st;
  event->context = call.context();
  event->id = call.engine().add_event();
  event->flags = Flags;
  call.state().events.insert(event);
  *phEvent = event;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().events, hEvent)) return CUDA_ERROR_INVALID_HANDLE;
  call.engine().remove_event(hEvent->id);
  call.state().events.erase(hEvent);
  delete hEvent;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  Call call(Need::context, Role::migration);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr || !alive(call.state().events, hEvent)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return capture_record(call, stream, hEvent, flags);
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  hEvent->capture.reset();
  hEvent->capture_tail.clear();
  hEvent->recorded = true;
  call.engine().record(call.host(), hEvent->id, enter(call, stream));
  // Another process has another clock, in which nothing says when the work before this is done: it
  // is before anybody can ask.
  return (hEvent->flags & CU_EVENT_INTERPROCESS) != 0 ? wait_for(call, hEvent) : CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventQuery(CUevent hEvent) {
  Call call(Need::context, Role::poll);
  if (!call) return call.error();
  if (!alive(call.state().events, hEvent)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = refuse_event(call, hEvent); error != CUDA_SUCCESS) return error;
  if (!hEvent->recorded) return CUDA_SUCCESS;
  const bool complete = call.poll([&] { return call.engine().query(call.host(), hEvent->id); });
  collect_violations(call.state());
  const CUresult sticky =
      call.state().devices[static_cast<std::size_t>(hEvent->context->device)].sticky;
  if (sticky != CUDA_SUCCESS) return sticky;
  return complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent) {
  Call call(Need::context, Role::synchronise);
  if (!call) return call.error();
  if (!alive(call.state().events, hEvent)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult error = refuse_event(call, hEvent); error != CUDA_SUCCESS) return error;
  return hEvent->recorded ? wait_for(call, hEvent) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const State& state = call.state();
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!alive(state.events, hStart) || !alive(state.events, hEnd)) return CUDA_ERROR_INVALID_HANDLE;
  if (!hStart->recorded || !hEnd->recorded ||
      ((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  const double start = state.engine.event_time(hStart->id), end = state.engine.event_time(hEnd->id);
  if (std::isnan(start) || std::isnan(end)) return CUDA_ERROR_NOT_READY;
  *pMilliseconds = static_cast<float>((end - start) * 1e-6);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
