// cuDNN is not stood in for. PyTorch asks at::Context::userEnabledCuDNN() before each use of it; loaded before libtorch_cpu, this
// definition answers no, so that an unmodified script takes PyTorch's own kernels.
extern "C" __attribute__((visibility("default"))) bool _ZNK2at7Context16userEnabledCuDNNEv(const void*) { return false; }
