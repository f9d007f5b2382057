// Stream capture: work on a capturing stream becomes nodes of a graph.
#include <algorithm>

#include "graphs.hpp"

using namespace deepum::simgpu;

namespace deepum::simgpu {
namespace {

void spoil(const std::shared_ptr<Capture>& capture) { capture->invalid = true; }

// A stream that meets an event of another stream's capture becomes part of that capture.
void join_capture(State& state, CUstream stream, const std::shared_ptr<Capture>& capture) {
  stream->capture = capture;
  stream->capture_tail.clear();
  state.capturing.insert(stream);
}

void leave_capture(State& state, CUstream stream) {
  stream->capture.reset();
  stream->capture_tail.clear();
  state.capturing.erase(stream);
}

void depend_on(std::vector<CUgraphNode>& tail, const std::vector<CUgraphNode>& more) {
  for (const CUgraphNode node : more) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
}

}  // namespace

CUresult refuse_in_capture(Call& call) {
  const State& state = call.state();
  if (state.capturing.empty()) return CUDA_SUCCESS;
  const Thread& thread = this_thread();
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult error = CUDA_SUCCESS;
  for (const CUstream stream : state.capturing) {
    Capture& capture = *stream->capture;
    if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool mine = capture.thread == &thread;
    const bool everybodys = capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                            thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !everybodys) continue;
    capture.invalid = true;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return error;
}

CUresult refuse_on_stream(Call& call, CUstream stream) {
  if (stream->capture == nullptr) return refuse_implicit(call, stream);
  spoil(stream->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_event(Call&, CUevent event) {
  if (event->capture == nullptr) return CUDA_SUCCESS;
  spoil(event->capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult refuse_implicit(Call& call, CUstream stream) {
  if (!stream->legacy) return CUDA_SUCCESS;
  CUresult error = CUDA_SUCCESS;
  for (const CUstream other : call.state().capturing) {
    if (other->context != stream->context || !other->blocking() ||
        other->capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
      continue;
    spoil(other->capture);
    error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return error;
}

CUresult capture_work(Call& call, CUstream stream, Work work) {
  (void)call;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const CUgraphNode node = add_node(stream->capture->graph, std::move(work), stream->capture_tail);
  stream->capture_tail = {node};
  return CUDA_SUCCESS;
}

CUresult capture_record(Call& call, CUstream stream, CUevent event, unsigned flags) {
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) return capture_work(call, stream, RecordWork{event});
  event->capture = stream->capture;
  event->capture_tail = stream->capture_tail;
  return CUDA_SUCCESS;
}

CUresult capture_wait(Call& call, CUstream stream, CUevent event) {
  if (event->capture == nullptr) {  // a captured stream cannot wait for work outside its graph
    spoil(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture == nullptr) {
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    join_capture(call.state(), stream, event->capture);
  } else if (stream->capture != event->capture) {
    spoil(stream->capture);
    spoil(event->capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  depend_on(stream->capture_tail, event->capture_tail);
  return CUDA_SUCCESS;
}

void abandon_capture(State& state, CUstream stream) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) {
    // Others must have waited for it by the end.
    depend_on(capture->left_behind, stream->capture_tail);
    leave_capture(state, stream);
    return;
  }
  // Nobody can end the capture any more; the other streams are free of it.
  capture->invalid = true;
  for (const CUstream other :
       std::vector<CUstream>(state.capturing.begin(), state.capturing.end())) {
    if (other->capture == capture) leave_capture(state, other);
  }
  if (capture->owns_graph) destroy_graph(state, capture->graph);
}

}  // namespace deepum::simgpu

namespace {

CUresult begin(Call& call, CUstream handle, CUgraph graph, std::vector<CUgraphNode> tail,
               CUstreamCaptureMode mode) {
  const CUstream stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy || stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->owns_graph = graph == nullptr;
  if (graph == nullptr) {
    graph = new CUgraph_st;
    graph->device = stream->context->device;
    call.state().graphs.insert(graph);
  }
  capture->graph = graph;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = &this_thread();
  capture->id = call.state().next_id++;
  stream->capture = std::move(capture);
  stream->capture_tail = std::move(tail);
  call.state().capturing.insert(stream);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  return begin(call, hStream, nullptr, {}, mode);
}

CUresult cuStreamBeginCapture(CUstream hStream) {
  return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t numDependencies, CUstreamCaptureMode mode) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, hGraph)) return CUDA_ERROR_INVALID_VALUE;
  return begin(call, hStream, hGraph, {dependencies, dependencies + numDependencies}, mode);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (phGraph != nullptr) *phGraph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->thread != &this_thread() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;

  State& state = call.state();
  // Work of the other streams must lead back to the origin: each last node there must be something
  // that another node depends on.
  const std::vector<CUgraphNode> joined = stream->capture_tail;
  const auto leads_back = [&](CUgraphNode node) {
    return std::find(joined.begin(), joined.end(), node) != joined.end() ||
           std::any_of(
               capture->graph->nodes.begin(), capture->graph->nodes.end(), [&](const auto& other) {
                 return std::find(other->dependencies.begin(), other->dependencies.end(), node) !=
                        other->dependencies.end();
               });
  };
  bool unjoined =
      !std::all_of(capture->left_behind.begin(), capture->left_behind.end(), leads_back);
  for (const CUstream other :
       std::vector<CUstream>(state.capturing.begin(), state.capturing.end())) {
    if (other->capture != capture) continue;
    unjoined |= other != stream &&
                !std::all_of(other->capture_tail.begin(), other->capture_tail.end(), leads_back);
    leave_capture(state, other);
  }
  if (!capture->invalid && !unjoined) {
    if (phGraph != nullptr) *phGraph = capture->graph;
    capture->invalid = true;  // events that remember it are of no use any more
    return CUDA_SUCCESS;
  }
  const CUresult error =
      capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  capture->invalid = true;
  if (capture->owns_graph) destroy_graph(state, capture->graph);
  return error;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = refuse_implicit(call, stream); error != CUDA_SUCCESS) return error;
  *captureStatus = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
                   : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  const CUresult error = cuStreamIsCapturing(hStream, captureStatus_out);
  if (error != CUDA_SUCCESS || *captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return error;
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr || stream->capture == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (id_out != nullptr) *id_out = stream->capture->id;
  if (graph_out != nullptr) *graph_out = stream->capture->graph;
  if (dependencies_out != nullptr) *dependencies_out = stream->capture_tail.data();
  if (edgeData_out != nullptr) *edgeData_out = nullptr;
  if (numDependencies_out != nullptr) *numDependencies_out = stream->capture_tail.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                                   nullptr, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr,
                                   nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t numDependencies,
                                              unsigned int flags) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_tail.clear();
  depend_on(stream->capture_tail, {dependencies, dependencies + numDependencies});
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           size_t numDependencies, unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, numDependencies,
                                              flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, this_thread().capture_mode);
  return CUDA_SUCCESS;
}
