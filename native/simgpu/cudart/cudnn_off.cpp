// cuDNN is not stood in for. PyTorch asks at::Context::userEnabledCuDNN() before each use of it,
// and userEnabledCuDNNSDP() before it takes its attention, which it prefers from compute
// capability 9.0 on; loaded before libtorch_cpu, these definitions answer no, so that an unmodified
// script takes PyTorch's own kernels.
extern "C" {
__attribute__((visibility("default"))) bool _ZNK2at7Context16userEnabledCuDNNEv(const void*) {
  return false;
}
__attribute__((visibility("default"))) bool _ZNK2at7Context19userEnabledCuDNNSDPEv(const void*) {
  return false;
}
}
