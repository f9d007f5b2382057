// /dev/nvidia-uvm-tools of the simulated GPU: the requests and rings of uvm_tools_abi.h, filled
// from the model's faults when somebody asks for what has happened, since virtual time stands still
// in between. Nothing else is recorded.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "fault_feed.hpp"
#include "state.hpp"
#include "uvm_tools.hpp"
#include "uvm_tools_abi.h"
#include "uvm_tools_device.h"

namespace deepum::simgpu {
namespace {

// As libcuda has two of /dev/nvidia-uvm; no numbers that the process could have.
constexpr int kOfLife = 1'000'000, kOfAddressSpace = 1'000'001;
constexpr const char* kRelease = "580.65.06";
// Ways in which a driver may not have it: no module, no device, one that may not be opened, no
// queue, no events; and records of one layout where another was asked for.
constexpr std::string_view kWays[] = {"no-driver", "absent", "forbidden",
                                      "refusing",  "mute",   "skewed"};

bool is_release(std::string_view text) { return !text.empty() && text[0] >= '1' && text[0] <= '9'; }

struct Queue {
  std::uint64_t records = 0;  // address
  std::uint32_t count = 0;
  bool second_layout = false;
  deepum_uvm_control* control = nullptr;
  bool enabled = false;
  std::uint32_t batch = 0;
};

// DEEPUM_SIM_UVM_TOOLS: the driver's release, or one of the ways.
struct Device {
  std::mutex mutex;
  std::string kind;
  std::map<int, Queue> queues;  // by descriptor

  Device() {
    const char* const text = std::getenv("DEEPUM_SIM_UVM_TOOLS");
    kind = text != nullptr && *text != '\0' ? text : kRelease;
  }
  bool plays(const char* what) const { return kind == what; }
  bool first_layout() const { return kind.starts_with("550") || kind.starts_with("555"); }
  bool asks_for_layout() const { return first_layout() && !kind.starts_with("550.40"); }
};

Device& device() {
  static auto* const made = new Device;  // outlives every exit handler that may still call
  return *made;
}

int release(char* text, std::size_t bytes) {
  const Device& d = device();
  if (d.plays("no-driver")) return -ENODEV;
  const std::string name = is_release(d.kind) ? d.kind : kRelease;
  if (bytes == 0) return -EINVAL;
  std::memcpy(text, name.c_str(), std::min(name.size() + 1, bytes));
  text[bytes - 1] = '\0';
  return 0;
}

int open_device() {
  Device& d = device();
  if (d.plays("absent")) return -ENOENT;
  if (d.plays("forbidden")) return -EACCES;
  // A number of its own, to be closed as any other.
  const int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return -errno;
  const std::lock_guard guard(d.mutex);
  d.queues[descriptor] = Queue{};
  return descriptor;
}

int uvm_descriptors(int* descriptors, int most) {
  if (state() == nullptr) return 0;
  constexpr int kAll[] = {kOfLife, kOfAddressSpace};
  for (int i = 0; i < most && i < 2; ++i) descriptors[i] = kAll[i];
  return 2;
}

void put(Queue& queue, const deepum_sim_fault& fault) {
  const std::uint32_t mask = queue.count - 1;
  const std::uint32_t get =
      std::atomic_ref(queue.control->get_behind).load(std::memory_order_acquire) & mask;
  const std::uint32_t at =
      std::atomic_ref(queue.control->put_behind).load(std::memory_order_relaxed) & mask;
  if (((queue.count + get - at) & mask) == 1) {
    ++queue.control->dropped[DEEPUM_UVM_EVENT_GPU_FAULT];
    return;
  }
  const auto fill = [&](auto record) {
    record.type = DEEPUM_UVM_EVENT_GPU_FAULT;
    record.fault_type = DEEPUM_UVM_FAULT_INVALID_PTE;
    record.access = fault.write != 0 ? DEEPUM_UVM_ACCESS_WRITE : DEEPUM_UVM_ACCESS_READ;
    record.gpu = static_cast<decltype(record.gpu)>(fault.device + 1);
    record.address = fault.address;
    record.time = record.gpu_time = fault.start_ns;
    record.batch = queue.batch;
    record.client_type = DEEPUM_UVM_CLIENT_GPC;
    // Records of one layout where the other was asked for.
    const bool skewed = device().plays("skewed");
    const std::size_t stride = skewed ? sizeof record - 8 : sizeof record;
    std::memcpy(reinterpret_cast<char*>(queue.records) + at * stride, &record, sizeof record);
  };
  if (queue.second_layout) {
    fill(deepum_uvm_fault_v2{});
  } else {
    fill(deepum_uvm_fault_v1{});
  }
  std::atomic_ref(queue.control->put_ahead).store((at + 1) & mask, std::memory_order_relaxed);
  std::atomic_ref(queue.control->put_behind).store((at + 1) & mask, std::memory_order_release);
}

// Lock held. One record for each fault; the model tells where by the block.
void deliver_to(Queue& queue) {
  struct Last {
    Queue& queue;
    std::uint64_t start = ~0ull;
  } last{queue};
  const auto each = [](void* data, const deepum_sim_fault* fault) {
    auto& [to, start] = *static_cast<Last*>(data);
    to.batch += fault->start_ns != start ? 1 : 0;
    start = fault->start_ns;
    for (std::uint32_t i = 0; i < fault->faults; ++i) put(to, *fault);
  };
  take_faults(FaultTaker::kUvmTools, queue.enabled ? +each : nullptr, &last, nullptr);
}

std::uint32_t init(Queue& queue, deepum_uvm_tracker& request, bool second) {
  if (device().plays("refusing")) return DEEPUM_NV_ERR_INSUFFICIENT_PERMISSIONS;
  // Nobody asks such a driver for the other.
  if (device().asks_for_layout() && request.requested != 1) return DEEPUM_NV_ERR_INVALID_ARGUMENT;
  if (request.uvm_descriptor == kOfLife) return DEEPUM_NV_ERR_ILLEGAL_ACTION;
  if (request.uvm_descriptor != kOfAddressSpace) return DEEPUM_NV_ERR_INSUFFICIENT_PERMISSIONS;
  if (request.count < 2 || request.count > UINT32_MAX ||
      (request.count & (request.count - 1)) != 0 || queue.control != nullptr) {
    return DEEPUM_NV_ERR_INVALID_ARGUMENT;
  }
  if (request.records == 0 || request.records % 4096 != 0 || request.control == 0 ||
      request.control % 4096 != 0) {
    return DEEPUM_NV_ERR_INVALID_ADDRESS;
  }
  queue.records = request.records;
  queue.count = static_cast<std::uint32_t>(request.count);
  queue.second_layout = second;
  queue.control = reinterpret_cast<deepum_uvm_control*>(request.control);
  if (device().asks_for_layout()) request.granted = request.requested;
  return DEEPUM_NV_OK;
}

std::uint32_t change(Queue& queue, const deepum_uvm_events& request, bool enable) {
  if (queue.control == nullptr || (request.events & ~(1ull << DEEPUM_UVM_EVENT_GPU_FAULT)) != 0)
    return DEEPUM_NV_ERR_INVALID_ARGUMENT;
  deliver_to(queue);  // what happened until here: forgotten, or still told
  queue.enabled = enable;
  return DEEPUM_NV_OK;
}

// The CPU is processor 0, a device's number one more than its ordinal.
std::uint32_t uuids(const deepum_uvm_uuids& request, bool second) {
  auto* const table = reinterpret_cast<unsigned char*>(request.table);
  if (table == nullptr) return DEEPUM_NV_ERR_INVALID_ADDRESS;
  // Numbers of the other layout.
  if (!second && request.count_or_status != 0) return DEEPUM_NV_ERR_INVALID_ARGUMENT;
  CUuuid uuid;
  std::size_t known = 1;
  for (CUdevice d = 0; cuDeviceGetUuid(&uuid, d) == CUDA_SUCCESS; ++d)
    std::memcpy(table + 16 * known++, uuid.bytes, 16);
  std::memset(table, 0xc0, 16);
  if (second) std::memset(table + 16 * known, 0, 16 * (DEEPUM_UVM_MOST_PROCESSORS - known));
  return DEEPUM_NV_OK;
}

int control(int descriptor, unsigned long request, void* argument) {
  Device& d = device();
  const bool has_second = !d.first_layout();
  if (descriptor == kOfAddressSpace) {
    auto& table = *static_cast<deepum_uvm_uuids*>(argument);
    if (request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2 && has_second) {
      table.count_or_status = uuids(table, true);
    } else if (request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE && !has_second) {
      table.status_or_none = uuids(table, false);
    } else {
      return -EINVAL;
    }
    return 0;
  }
  const std::lock_guard guard(d.mutex);
  const auto found = d.queues.find(descriptor);
  if (found == d.queues.end()) return -EBADF;
  Queue& queue = found->second;
  auto* const tracker = static_cast<deepum_uvm_tracker*>(argument);
  auto* const events = static_cast<deepum_uvm_events*>(argument);
  switch (request) {
    case DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER:
      tracker->status = init(queue, *tracker, false);
      return 0;
    case DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER_V2:
      if (!has_second) return -EINVAL;
      tracker->status = init(queue, *tracker, true);
      return 0;
    case DEEPUM_UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS:
      if (d.plays("mute")) return -EIO;
      events->status = change(queue, *events, true);
      return 0;
    case DEEPUM_UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS:
      events->status = change(queue, *events, false);
      return 0;
    default:
      return -EINVAL;
  }
}

int deliver(int descriptor) {
  Device& d = device();
  const std::lock_guard guard(d.mutex);
  const auto found = d.queues.find(descriptor);
  if (found == d.queues.end() || found->second.control == nullptr) return -EBADF;
  deliver_to(found->second);
  return 0;
}

}  // namespace

bool usable_uvm_tools(std::string_view kind) {
  return is_release(kind) || std::ranges::find(kWays, kind) != std::end(kWays);
}

}  // namespace deepum::simgpu

extern "C" __attribute__((visibility("default")))
const deepum_uvm_tools_table deepum_uvm_tools_device;
const deepum_uvm_tools_table deepum_uvm_tools_device{
    deepum::simgpu::release, deepum::simgpu::open_device, deepum::simgpu::uvm_descriptors,
    deepum::simgpu::control, deepum::simgpu::deliver};
