/* A program that defines some of the runtime's names itself, as a test of CUDA code does. */
#include <stdio.h>

int cudaMalloc(void** memory, unsigned long bytes) { return *memory = NULL, bytes == 7; }
int cudaLaunchKernel(void) { return 1; }
void** __cudaRegisterFatBinary(void* image) { return image; }

int main(void) {
  void* memory = &memory;
  const int own = cudaMalloc(&memory, 7) == 1 && cudaLaunchKernel() == 1 &&
                  __cudaRegisterFatBinary(&memory) == &memory;
  printf("its own functions are called: %s\n", own ? "yes" : "no");
}
