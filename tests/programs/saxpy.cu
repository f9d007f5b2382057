// nvcc's own: two files, kernels by <<<>>>, streams, events, managed memory. Prints "claim: yes" or
// "claim: no".
#include <cstdio>

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

__managed__ int everywhere[1000];
__global__ void writes() { everywhere[0] = 1; }

cudaError_t fill(float* memory, int n, cudaStream_t stream);  // saxpy_fill.cu

static void claim(const char* text, bool holds) {
  std::printf("%s: %s\n", text, holds ? "yes" : "no");
}
static bool ok(cudaError_t error) { return error == cudaSuccess; }

int main() {
  constexpr int kCount = 1 << 20;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  static float sent[kCount], came[kCount];
  for (int i = 0; i < kCount; ++i) sent[i] = float(i % 100);
  float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  claim("memory", ok(cudaMalloc(&x, kBytes)) && ok(cudaMalloc(&y, kBytes)) &&
                      ok(cudaMallocManaged(&z, kBytes)));
  claim("a stream and events",
        ok(cudaStreamCreate(&stream)) && ok(cudaEventCreate(&begin)) && ok(cudaEventCreate(&end)));
  claim("copies", ok(cudaMemcpyAsync(x, sent, kBytes, cudaMemcpyHostToDevice, stream)) &&
                      ok(cudaEventRecord(begin, stream)) &&
                      ok(cudaMemcpyAsync(came, x, kBytes, cudaMemcpyDeviceToHost, stream)) &&
                      ok(cudaStreamSynchronize(stream)));
  claim("of the data", came[123] == 23);
  saxpy<<<kCount / 256, 256, 0, stream>>>(kCount, 2, x, y);
  claim("a launch", ok(cudaGetLastError()));
  claim("of the other file's kernel", ok(fill(z, kCount, stream)));
  claim("time", ok(cudaEventRecord(end, stream)) && ok(cudaEventSynchronize(end)));
  float ms = 0;
  claim("that has passed", ok(cudaEventElapsedTime(&ms, begin, end)) && ms > 0);
  everywhere[999] = 7;
  writes<<<1, 1>>>();
  int seen = 0;
  claim("a managed variable",
        ok(cudaDeviceSynchronize()) && everywhere[999] == 7 &&
            ok(cudaMemcpyFromSymbol(&seen, everywhere, sizeof seen, 999 * sizeof seen)) &&
            seen == 7);
  cudaDeviceProp properties;
  claim("the device's name",
        ok(cudaGetDeviceProperties(&properties, 0)) && properties.name[0] != 0);
  claim("all is freed",
        ok(cudaFree(x)) && ok(cudaFree(y)) && ok(cudaFree(z)) && ok(cudaStreamDestroy(stream)));
}
