__global__ void fills(float* memory, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) memory[i] = 1;
}

cudaError_t fill(float* memory, int n, cudaStream_t stream) {
  fills<<<n / 256, 256, 0, stream>>>(memory, n);
  return cudaGetLastError();
}
