// What libcudart.so.13 alone has.
#include "device_properties.hpp"

using namespace deepum::simgpu::cudart;

const Major deepum::simgpu::cudart::kMajor{CUDART_VERSION, sizeof(cudaPointerAttributes)};

extern "C" cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp* properties,
                                                         int device) {
  return get_properties(properties, device);
}
