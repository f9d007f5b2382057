// User objects: things of the program that live as long as the graphs that refer to them.
#include <algorithm>

#include "graphs.hpp"
#include "pump.hpp"

struct CUuserObject_st {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  unsigned owned = 0;  // references of the program
  unsigned held = 0;   // of graphs, and of launches under way
};

namespace deepum::simgpu {
namespace {

std::unordered_set<const void*>& objects() {
  static auto* const live = new std::unordered_set<const void*>;  // guarded by the driver's lock
  return *live;
}

void destroy_unless_needed(State& state, CUuserObject object) {
  if (object->owned > 0 || object->held > 0) return;
  // At the process's end nothing of the program's is run any more.
  if (!state.ended)
    run_soon(state, [destroy = object->destroy, pointer = object->pointer] { destroy(pointer); });
  objects().erase(object);
  delete object;
}

}  // namespace

void retain_object(CUuserObject object, unsigned count) { object->held += count; }

void release_object(State& state, CUuserObject object, unsigned count) {
  object->held -= count;
  destroy_unless_needed(state, object);
}

}  // namespace deepum::simgpu

using namespace deepum::simgpu;

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initialRefcount, unsigned int flags) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (object_out == nullptr || destroy == nullptr || initialRefcount == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  *object_out = new CUuserObject_st{ptr, destroy, initialRefcount, 0};
  objects().insert(*object_out);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (count == 0 || !alive(objects(), object)) return CUDA_ERROR_INVALID_VALUE;
  object->owned += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (count == 0 || !alive(objects(), object) || count > object->owned)
    return CUDA_ERROR_INVALID_VALUE;
  object->owned -= count;
  destroy_unless_needed(call.state(), object);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, graph) || !alive(objects(), object) || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) != 0) {  // the program's references become the graph's
    if (count > object->owned) return CUDA_ERROR_INVALID_VALUE;
    object->owned -= count;
  }
  retain_object(object, count);
  graph->objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (!alive(call.state().graphs, graph) || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto held = graph->objects.find(object);
  if (held == graph->objects.end() || count > held->second) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->objects.erase(held);
  release_object(call.state(), object, count);
  return CUDA_SUCCESS;
}
