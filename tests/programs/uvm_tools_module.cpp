// kernel_hooks/uvm_tools_device.cpp and uvm_tools_queue.cpp against a kernel module that is played
// here: open, ioctl, fstat and stat of its two devices are answered by the functions below
// (-Wl,--wrap), everything else is the system's. Links without libcuda, so the module is asked
// itself. Prints what a queue tells, one word a line; MODULE_RELEASE is the driver's, MODULE_MODE
// what is wrong with it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fault_source.hpp"
#include "uvm_tools_abi.h"
#include "uvm_tools_device.hpp"
#include "uvm_tools_queue.hpp"

namespace deepum::hooks {
void* driver_library(bool) noexcept { return nullptr; }
void* real_dlsym(void*, const char*) noexcept { return nullptr; }
}  // namespace deepum::hooks

namespace {

const dev_t kUvm = makedev(511, 0), kTools = makedev(511, 1);
int uvm[2] = {-1, -1};  // libcuda's: without an address space, and with one
int tools = -1;
deepum_uvm_tracker tracker;
bool second = false, enabled = false;

bool mode(const char* what) {
  const char* const given = std::getenv("MODULE_MODE");
  return given && std::strcmp(given, what) == 0;
}

// As enqueue_event: the record, then put; a reader's get is looked at each time.
template <typename Record>
void put(unsigned gpu, std::uint64_t address, unsigned access) {
  auto* const control = reinterpret_cast<deepum_uvm_control*>(tracker.control);
  if (!enabled) {
    return;
  }
  const auto mask = static_cast<std::uint32_t>(tracker.count - 1);
  const std::uint32_t at = control->put_behind;
  if (((tracker.count + std::atomic_ref(control->get_behind).load(std::memory_order_acquire) - at) &
       mask) == 1) {
    std::atomic_ref(control->dropped[DEEPUM_UVM_EVENT_GPU_FAULT]).fetch_add(1);
    return;
  }
  Record record{};
  record.type = DEEPUM_UVM_EVENT_GPU_FAULT;
  record.gpu = static_cast<decltype(record.gpu)>(gpu);
  record.access = static_cast<std::uint8_t>(access);
  record.address = address;
  record.client_type = DEEPUM_UVM_CLIENT_GPC;
  std::memcpy(reinterpret_cast<char*>(tracker.records) + at * sizeof record, &record,
              sizeof record);
  std::atomic_ref(control->put_ahead).store((at + 1) & mask, std::memory_order_relaxed);
  std::atomic_ref(control->put_behind).store((at + 1) & mask, std::memory_order_release);
}

void fault(unsigned gpu, std::uint64_t address, unsigned access) {
  second ? put<deepum_uvm_fault_v2>(gpu, address, access)
         : put<deepum_uvm_fault_v1>(gpu, address, access);
}

// Written by one thread while another reads: each fault is told once and in order, or counted as
// left out.
void race(deepum::hooks::UvmToolsQueue& queue) {
  constexpr std::uint64_t kFaults = 2'000'000;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kFaults; ++i) {
      fault(1, i << 12, 1 + i % 3);
    }
    done.store(true);
  });
  std::uint64_t told = 0, last = 0;
  bool sound = true;
  for (bool more = true; more && sound;) {
    more = !done.load();
    sound = queue.read([&](const deepum::hooks::UvmFault& one) {
      sound &= one.address >> 12 > last && one.access == 1 + (one.address >> 12) % 3;
      last = one.address >> 12;
      ++told;
    }) && sound;
  }
  writer.join();
  std::printf(
      "%s, %s\n", sound ? "sound" : "strange",
      told + queue.dropped() == kFaults && told != 0 ? "all accounted for" : "some are lost");
}

}  // namespace

extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_fstat(int descriptor, struct stat* told);
int __real_stat(const char* path, struct stat* told);
int __real_ioctl(int descriptor, unsigned long request, ...);

int __wrap_open(const char* path, int flags, ...) {
  if (std::strcmp(path, "/sys/module/nvidia/version") == 0) {
    errno = ENOENT;
    return -1;
  }
  if (std::strcmp(path, "/proc/driver/nvidia/version") == 0) {
    int ends[2];
    if (pipe(ends) != 0) {
      return -1;
    }
    dprintf(ends[1],
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  "
            "(x@y)\nGCC version:  gcc version 12.2.0\n",
            std::getenv("MODULE_RELEASE"));
    close(ends[1]);
    return ends[0];
  }
  if (std::strcmp(path, "/dev/nvidia-uvm-tools") == 0) {
    if (mode("absent") || mode("forbidden")) {
      errno = mode("absent") ? ENOENT : EACCES;
      return -1;
    }
    if ((flags & O_CLOEXEC) == 0 || (flags & O_ACCMODE) != O_RDWR) {
      std::abort();
    }
    return tools = __real_open("/dev/null", flags);
  }
  return __real_open(path, flags);
}

int __wrap_stat(const char* path, struct stat* told) {
  const bool is_uvm = std::strcmp(path, "/dev/nvidia-uvm") == 0;
  const int error = __real_stat(is_uvm ? "/dev/null" : path, told);
  if (is_uvm) {
    told->st_rdev = kUvm;
  }
  return error;
}

int __wrap_fstat(int descriptor, struct stat* told) {
  static int asked = 0;
  const int error = __real_fstat(descriptor, told);
  if (descriptor >= 0 && (descriptor == uvm[0] || descriptor == uvm[1])) {
    told->st_rdev = kUvm;
  } else if (descriptor >= 0 && descriptor == tools) {
    told->st_rdev = kTools;
    // The program has closed it, and opened another file.
    told->st_ino += mode("closed") && asked++ != 0 ? 1 : 0;
  }
  return error;
}

int __wrap_ioctl(int descriptor, unsigned long request, void* argument) {
  if (descriptor == uvm[1] && (request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2 ||
                               request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE)) {
    auto* const asked = static_cast<deepum_uvm_uuids*>(argument);
    if (asked->count_or_status != 0) {
      std::abort();
    }
    std::memset(reinterpret_cast<char*>(asked->table) + 16, 7, 16);
    asked->count_or_status = request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE ? 2 : 0;
    asked->status_or_none = request == DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE ? 0 : 0xdead;
    return 0;
  }
  if (descriptor != tools) {
    return __real_ioctl(descriptor, request, argument);
  }
  if (request == DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER ||
      request == DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER_V2) {
    tracker = *static_cast<deepum_uvm_tracker*>(argument);
    second = request == DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER_V2;
    static_cast<deepum_uvm_tracker*>(argument)->granted = mode("other-layout") ? 2 : 0;
    std::uint32_t& status = static_cast<deepum_uvm_tracker*>(argument)->status;
    const auto asked = static_cast<int>(tracker.uvm_descriptor);
    status = mode("refusing")  ? 0x1b
             : asked == uvm[1] ? 0
             : asked == uvm[0] ? DEEPUM_NV_ERR_ILLEGAL_ACTION
                               : 0x1b;
    return 0;
  }
  if (request == DEEPUM_UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS ||
      request == DEEPUM_UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS) {
    auto* const events = static_cast<deepum_uvm_events*>(argument);
    if (events->events != 8) {
      std::abort();
    }
    enabled = request == DEEPUM_UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS;
    events->status = 0;
    return 0;
  }
  errno = EINVAL;
  return -1;
}
}

int main() {
  using namespace deepum::hooks;
  if (!mode("no-libcuda")) {
    for (int& one : uvm) {
      one = __real_open("/dev/null", O_RDWR | O_CLOEXEC);
    }
  }
  UvmToolsQueue queue;
  char why[160] = "";
  if (queue.open(uvm_tools_device(), why, sizeof why) != UvmToolsQueue::Opened::kYes) {
    std::printf("refused: %s\n", why);
    return 0;
  }
  unsigned char table[16 * DEEPUM_UVM_MOST_PROCESSORS];
  const bool known = queue.uuids(table);
  std::printf("uuids %d %d %d\n", known, table[16], table[32]);
  fault(1, 0x200000, 1);  // nobody asked yet
  if (const int error = queue.enable()) {
    std::printf("not enabled: %d\n", error);
    abandon_uvm_tools_in_child();
    std::printf("closed %d\n", fcntl(tools, F_GETFD) < 0);
    return 0;
  }
  if (mode("racing")) {
    race(queue);
    return 0;
  }
  const auto tell = [&] {
    unsigned long faults = 0;
    UvmFault last{};
    const bool sound = queue.read([&](const UvmFault& one) { ++faults, last = one; });
    std::printf("%s %lu faults, last 0x%lx by %u, access %u, %lu dropped\n",
                sound ? "sound" : "strange", faults, last.address, last.gpu, last.access,
                queue.dropped());
  };
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    fault(1, i << 12, 2);
  }
  tell();
  fault(3, 0x7f0000001000, 1);
  fault(3, 0x7f0000002000, 4);
  tell();
  fault(1, 0x1000, 1);
  queue.disable();
  fault(1, 0x3000, 1);
  queue.enable();  // what nobody took is forgotten
  tell();
  fault(0, 0x1000, 1);  // no GPU has this number
  tell();
  tell();
  abandon_uvm_tools_in_child();
  std::printf("closed %d\n", fcntl(tools, F_GETFD) < 0);
}
