// Devices: count, names, sizes, attributes, peers.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "device.hpp"
#include "state.hpp"

using namespace deepum::simgpu;

CUresult cuInit(unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return initialise();
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = 13000;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(call.state().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (name == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  const std::string_view full = call.state().machine.gpu_name;
  std::snprintf(name, static_cast<std::size_t>(len), "%.*s", static_cast<int>(full.size()),
                full.data());
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = call.state().devices[static_cast<std::size_t>(dev)].memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  std::memcpy(uuid->bytes, "deepum-sim-gpu", 14);
  uuid->bytes[15] = static_cast<char>(dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid(uuid, dev); }

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pi == nullptr || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pi = device_attribute(call.state(), attrib, dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  const State& state = call.state();
  if (value == nullptr || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
    return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(state, srcDevice) || !valid_device(state, dstDevice) || srcDevice == dstDevice)
    return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;  // the cards of a machine are joined by the host only
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev) || !valid_device(call.state(), peerDev))
    return CUDA_ERROR_INVALID_DEVICE;
  *canAccessPeer = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *major = call.state().machine.presented_major;
  *minor = call.state().machine.presented_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const State& state = call.state();
  if (!valid_device(state, dev)) return CUDA_ERROR_INVALID_DEVICE;
  const auto get = [&](CUdevice_attribute attribute) {
    return device_attribute(state, attribute, dev);
  };
  *prop = {get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
           {get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
           {get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
           get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
           get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
           get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
           get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
           get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
           get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
           get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (pciBusId == nullptr || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02X:00.0",
                device_attribute(call.state(), CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, dev));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  unsigned domain = 0, bus = 0;
  if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::sscanf(pciBusId, "%x:%x", &domain, &bus) != 2 || bus == 0 ||
      !valid_device(call.state(), static_cast<int>(bus) - 1)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *dev = static_cast<int>(bus) - 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements, CUarray_format, unsigned,
                                            CUdevice dev) {
  const Call call(Need::initialised, Role::neutral);
  if (!call) return call.error();
  if (maxWidthInElements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(call.state(), dev)) return CUDA_ERROR_INVALID_DEVICE;
  *maxWidthInElements = 1u << 27;
  return CUDA_SUCCESS;
}
