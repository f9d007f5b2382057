/* Boxes of memory by the runtime API, variables, and what it does not have. Prints "claim: yes" or
 * "claim: no". */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext,
                       size_t bytes, int constant, int global);

enum { W = 20, H = 6, D = 4, PITCH = 48, ROWS = 9 };
static char from[D][ROWS][PITCH], to[D][ROWS][PITCH];

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

static void boxes(void) {
  struct cudaPitchedPtr box;
  const struct cudaExtent extent = {W, H, D};
  for (int i = 0; i < (int)sizeof from; ++i) ((char*)from)[i] = (char)(i * 7 + 1);
  claim("a box is allocated", cudaMalloc3D(&box, extent) == cudaSuccess && box.pitch >= W &&
                                  box.xsize == W && box.ysize == H);
  claim("and filled", cudaMemset3D(box, 9, extent) == cudaSuccess);

  /* Into the middle of it: W-4 x H-2 x D-1 from (3, 2, 1) on the host to (2, 1, 1). */
  struct cudaMemcpy3DParms in = {.srcPtr = {from, PITCH, PITCH, ROWS},
                                 .srcPos = {3, 2, 1},
                                 .dstPtr = box,
                                 .dstPos = {2, 1, 1},
                                 .extent = {W - 4, H - 2, D - 1},
                                 .kind = cudaMemcpyHostToDevice};
  claim("a part is copied in", cudaMemcpy3D(&in) == cudaSuccess);
  struct cudaMemcpy3DParms out = {.srcPtr = box,
                                  .dstPtr = {to, PITCH, PITCH, ROWS},
                                  .extent = {W, H, D},
                                  .kind = cudaMemcpyDeviceToHost};
  memset(to, 1, sizeof to);
  claim("all is copied out",
        cudaMemcpy3DAsync(&out, 0) == cudaSuccess && cudaStreamSynchronize(0) == cudaSuccess);
  int inside = 1, around = 1, beyond = 1;
  for (int z = 0; z < D; ++z)
    for (int y = 0; y < ROWS; ++y)
      for (int x = 0; x < PITCH; ++x) {
        const char found = to[z][y][x];
        if (x >= W || y >= H)
          beyond &= found == 1;
        else if (x >= 2 && x < W - 2 && y >= 1 && y < H - 1 && z >= 1)
          inside &= found == from[z][y + 1][x + 1];
        else
          around &= found == 9;
      }
  claim("the part is what was copied", inside);
  claim("around it is what was filled", around);
  claim("nothing is written beside the box", beyond);

  struct cudaPitchedPtr part = box;
  part.ptr = (char*)box.ptr + box.pitch; /* from row 1 on: not all rows of a plane */
  claim("a part is filled",
        cudaMemset3DAsync(part, 4, (struct cudaExtent){3, 2, D}, 0) == cudaSuccess &&
            cudaMemcpy3D(&out) == cudaSuccess);
  int filled = 1;
  for (int z = 0; z < D; ++z)
    filled &= to[z][0][0] == 9 && to[z][1][2] == 4 && to[z][2][0] == 4 && to[z][3][0] == 9 &&
              to[z][1][3] != 4;
  claim("and no more", filled);
  claim("nothing is not a box", cudaMemcpy3D(NULL) == cudaErrorInvalidValue);
}

static char table[256], other[16], image[64]; /* no code in it */
static void variables(void) {
  void** handle = __cudaRegisterFatBinary(image);
  __cudaRegisterVar(handle, table, NULL, "table", 0, sizeof table, 0, 0);
  char text[8] = "";
  size_t bytes = 0;
  void* address = NULL;
  claim("a variable has a size",
        cudaGetSymbolSize(&bytes, table) == cudaSuccess && bytes == sizeof table);
  claim("is written",
        cudaMemcpyToSymbolAsync(table, "driver", 7, 100, cudaMemcpyHostToDevice, 0) == cudaSuccess);
  claim("and read",
        cudaMemcpyFromSymbol(text, table, 7, 100, cudaMemcpyDeviceToHost) == cudaSuccess &&
            strcmp(text, "driver") == 0);
  claim("where its address says",
        cudaGetSymbolAddress(&address, table) == cudaSuccess &&
            cudaMemcpy(text, (char*)address + 103, 4, cudaMemcpyDeviceToHost) == cudaSuccess &&
            strcmp(text, "ver") == 0);
  claim("another is unknown", cudaGetSymbolSize(&bytes, other) == cudaErrorInvalidSymbol);
}

static void missing(void) {
  cudaArray_t array = NULL;
  struct cudaChannelFormatDesc format = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
  for (int i = 0; i < 3; ++i)
    claim("arrays are missing",
          cudaMallocArray(&array, &format, 16, 16, 0) == cudaErrorNotSupported);
  struct cudaMemcpy3DParms copy = {
      .srcArray = (cudaArray_t)table, .dstPtr = {to, PITCH, PITCH, ROWS}, .extent = {1, 1, 1}};
  for (int i = 0; i < 2; ++i)
    claim("copies of them too", cudaMemcpy3D(&copy) == cudaErrorNotSupported);
}

int main(void) {
  boxes();
  variables();
  missing();
  return 0;
}
