/* User objects: destroyed when the last graph, launch or reference that needs them is gone. Prints
 * "claim: yes" or "claim: no". */
#include <cuda.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int destroyed;
static CUresult inside = CUDA_SUCCESS;
static CUstream s;

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }
static void destroy(void* counter) {
  inside = cuStreamQuery(s);
  ++*(atomic_int*)counter;
}
/* Destruction is the driver's to time: waits for it, or long enough to have seen it. */
static int becomes(int wanted) {
  for (int i = 0; i < 5000 && destroyed != wanted; ++i) usleep(1000);
  return destroyed == wanted;
}
static int stays(int wanted) {
  usleep(20000);
  return destroyed == wanted;
}

static CUuserObject object_with(unsigned references) {
  CUuserObject object = NULL;
  const CUresult error = cuUserObjectCreate(&object, &destroyed, destroy, references,
                                            CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  return error == CUDA_SUCCESS ? object : NULL;
}

int main(void) {
  CUcontext context;
  CUgraph graph, clone, parent;
  CUgraphNode node;
  CUgraphExec exec;
  CUuserObject object;
  unsigned* gate;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuMemHostAlloc((void**)&gate, 8, 0) ||
      cuGraphCreate(&graph, 0) || cuGraphAddEmptyNode(&node, graph, NULL, 0))
    return 1;
  *gate = 0;

  claim("a program's references are counted",
        (object = object_with(2)) != NULL && cuUserObjectRetain(object, 1) == CUDA_SUCCESS &&
            cuUserObjectRelease(object, 2) == CUDA_SUCCESS && stays(0) &&
            cuUserObjectRelease(object, 2) == CUDA_ERROR_INVALID_VALUE &&
            cuUserObjectRelease(object, 1) == CUDA_SUCCESS && becomes(1));
  claim("CUDA is not to be called while it is destroyed", inside == CUDA_ERROR_NOT_PERMITTED);
  claim("it is nothing any more", cuUserObjectRetain(object, 1) == CUDA_ERROR_INVALID_VALUE);

  object = object_with(1);
  claim("a graph takes an object over",
        object != NULL &&
            cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS);
  claim("the program has nothing to release then",
        cuUserObjectRelease(object, 1) == CUDA_ERROR_INVALID_VALUE);
  claim("nor to move", cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) ==
                           CUDA_ERROR_INVALID_VALUE);
  claim("a graph keeps two",
        cuGraphRetainUserObject(graph, object, 1, 0) == CUDA_SUCCESS &&
            cuGraphReleaseUserObject(graph, object, 3) == CUDA_ERROR_INVALID_VALUE &&
            cuGraphReleaseUserObject(graph, object, 1) == CUDA_SUCCESS && stays(1));
  if (cuGraphClone(&clone, graph) || cuGraphCreate(&parent, 0) ||
      cuGraphAddChildGraphNode(&node, parent, NULL, 0, clone) ||
      cuGraphInstantiateWithFlags(&exec, parent, 0) || cuGraphDestroy(graph) ||
      cuGraphDestroy(parent))
    return 1;
  claim("it lives with a copy of the graph", stays(1) && cuGraphDestroy(clone) == CUDA_SUCCESS);
  claim("and with a graph made of a graph around it", stays(1));

  claim("a launch is held up",
        cuStreamWaitValue32(s, (CUdeviceptr)gate, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS &&
            cuGraphLaunch(exec, s) == CUDA_SUCCESS && cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  claim("the object lives until it is done",
        stays(1) && cuStreamQuery(s) == CUDA_ERROR_NOT_READY && stays(1));
  *gate = 1;
  claim("and no longer", cuStreamSynchronize(s) == CUDA_SUCCESS && becomes(2));
  return 0;
}
