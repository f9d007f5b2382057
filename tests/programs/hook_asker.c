/* A library that asks for memory. Compiled under several names, and with HAND_ON as one that only
 * hands on what others ask of it. Nothing here is a tail call: a library that has left the stack
 * cannot be seen to have asked. */
#include <cuda.h>

#ifdef HAND_ON
CUresult hand_on(CUdeviceptr* address, size_t bytes) {
  volatile CUresult result = cuMemAlloc(address, bytes);
  return result;
}
#else
CUresult hand_on(CUdeviceptr* address, size_t bytes);

CUresult ask(CUdeviceptr* address, size_t bytes) {
  volatile CUresult result = cuMemAlloc(address, bytes);
  return result;
}
CUresult ask_pitched(CUdeviceptr* address, size_t bytes) {
  size_t pitch;
  volatile CUresult result = cuMemAllocPitch(address, &pitch, 512, bytes / 512, 4);
  return result;
}
CUresult ask_in_order(CUdeviceptr* address, size_t bytes) {
  volatile CUresult result = cuMemAllocAsync(address, bytes, 0);
  return result;
}
CUresult ask_through(CUdeviceptr* address, size_t bytes) {
  volatile CUresult result = hand_on(address, bytes);
  return result;
}
#endif
