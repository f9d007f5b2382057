// The event queue of /dev/nvidia-uvm-tools, as NVIDIA's own tools use it. Any number of them may
// watch a process; nobody is disturbed. Its interface is private, so it is used with those drivers
// alone whose source was read (uvm_tools_layout.hpp), and what arrives has to look like what was
// asked for, or the source is left for good.
#include <cstdio>
#include <cstring>
#include <vector>

#include "driver.hpp"
#include "fault_source.hpp"
#include "immortal.hpp"
#include "message.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "uvm_tools_queue.hpp"

namespace deepum::hooks {
namespace {

constexpr std::uint64_t kBlock = 2ull << 20;
constexpr std::uint32_t kUnknown = ~0u;

std::uint8_t access_of(std::uint8_t type) noexcept {
  switch (type) {
    case DEEPUM_UVM_ACCESS_READ:
      return DEEPUM_FAULT_READ;
    case DEEPUM_UVM_ACCESS_WRITE:
      return DEEPUM_FAULT_WRITE;
    case DEEPUM_UVM_ACCESS_ATOMIC:
      return DEEPUM_FAULT_ATOMIC;
    default:
      return 0;
  }
}

class UvmToolsFaultSource final : public FaultSource {
 public:
  const char* name() const noexcept override { return "uvm-tools"; }
  const char* why() const noexcept override { return why_; }
  Start start() noexcept override;
  bool take(std::vector<ObservedFault>& faults) override;
  void stop() noexcept override {
    if (queue_.is_open()) {
      queue_.disable();
    }
  }

 private:
  void ask_for_devices() noexcept;
  std::uint32_t device_of(std::uint16_t gpu) const noexcept {
    return gpu < DEEPUM_UVM_MOST_PROCESSORS ? devices_[gpu] : kUnknown;
  }

  UvmToolsQueue queue_;
  std::uint32_t devices_[DEEPUM_UVM_MOST_PROCESSORS];  // CUDA ordinals by the driver's index
  std::uint64_t missed_ = 0;
  bool broken_ = false;
  char why_[160] = "";
};

FaultSource::Start UvmToolsFaultSource::start() noexcept {
  if (broken_) {
    return Start::kRefused;
  }
  Inside guard;
  if (!queue_.is_open()) {
    switch (queue_.open(uvm_tools_device(), why_, sizeof why_)) {
      case UvmToolsQueue::Opened::kYes:
        break;
      case UvmToolsQueue::Opened::kAbsent:
        return Start::kAbsent;
      case UvmToolsQueue::Opened::kRefused:
        return Start::kRefused;
    }
    ask_for_devices();
  }
  if (const int error = queue_.enable(); error != 0) {
    std::snprintf(why_, sizeof why_, "its events were refused with error 0x%x", error);
    queue_.close();
    return Start::kRefused;
  }
  return Start::kOn;
}

// Where the program sees one device every fault is its own, whatever its UUID: a MIG instance has
// another to CUDA than to the module.
void UvmToolsFaultSource::ask_for_devices() noexcept {
  const runtime::Driver& driver = runtime::driver();
  CUuuid uuid;
  const bool only_one = !driver.DeviceGetUuid || driver.DeviceGetUuid(&uuid, 1) != CUDA_SUCCESS;
  std::memset(devices_, only_one ? 0 : 0xff, sizeof devices_);
  unsigned char table[std::size_t{16} * DEEPUM_UVM_MOST_PROCESSORS];
  if (only_one || !queue_.uuids(table)) {
    return;
  }
  for (CUdevice device = 0;
       device < DEEPUM_MAX_DEVICES && driver.DeviceGetUuid(&uuid, device) == CUDA_SUCCESS;
       ++device) {
    for (std::size_t gpu = 1; gpu < DEEPUM_UVM_MOST_PROCESSORS; ++gpu) {
      if (std::memcmp(table + gpu * 16, uuid.bytes, 16) == 0) {
        devices_[gpu] = static_cast<std::uint32_t>(device);
      }
    }
  }
}

// The driver records each fault of a page, so neighbours of a block are added up at once.
bool UvmToolsFaultSource::take(std::vector<ObservedFault>& faults) {
  Inside guard;
  queue_.deliver();
  bool refreshed = false;
  const bool sound = queue_.read([&](const UvmFault& fault) {
    if (fault.access == DEEPUM_UVM_ACCESS_PREFETCH) {
      return;
    }
    // Of a device that the program came to use since.
    if (device_of(fault.gpu) == kUnknown && !refreshed) {
      refreshed = true;
      ask_for_devices();
    }
    const ObservedFault one{fault.address, 1, device_of(fault.gpu), access_of(fault.access)};
    if (ObservedFault* const last = faults.empty() ? nullptr : &faults.back();
        last && last->address / kBlock == one.address / kBlock && last->device == one.device &&
        last->access == one.access) {
      ++last->faults;
    } else if (one.device != kUnknown) {
      faults.push_back(one);
    }
  });
  if (const std::uint64_t dropped = queue_.dropped(); dropped != missed_) {
    if (missed_ == 0) {
      runtime::say(runtime::Level::kInformation,
                   "some faults are not observed: %s: its queue was full, %llu were left out",
                   name(), static_cast<unsigned long long>(dropped));
    }
    missed_ = dropped;
  }
  if (!sound) {
    std::snprintf(why_, sizeof why_, "its events are not laid out as this driver's should be");
    broken_ = true;
    queue_.disable();
    queue_.close();
  }
  return sound;
}

}  // namespace

FaultSource& uvm_tools_fault_source() noexcept { return immortal<UvmToolsFaultSource>(); }

}  // namespace deepum::hooks
