#include "uvm_tools_queue.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "fault_source.hpp"

namespace deepum::hooks {
namespace {

// libcuda has two: one holds the address space, the other its life.
constexpr int kMostUvmDescriptors = 16;
constexpr std::size_t kPage = 64u << 10;  // of the largest pages that Linux has on these machines

std::atomic<const UvmToolsQueue*> open_queue{nullptr};

// More than any layout's: a driver that took ours for another would still write into the ring
// alone.
constexpr std::size_t kMostRecordBytes = 128;

std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

UvmToolsQueue::Opened UvmToolsQueue::open(const deepum_uvm_tools_table& device, char* why,
                                          std::size_t bytes) noexcept {
  char release[32] = "";
  if (device.release(release, sizeof release) < 0) {
    std::snprintf(why, bytes, "no kernel module of NVIDIA's is loaded");
    return Opened::kAbsent;
  }
  const UvmLayout* const layout = uvm_layout_of(release);
  if (!layout) {
    std::snprintf(why, bytes, "the events' layout is not known for driver %s, but for %s", release,
                  kUvmBranches);
    return Opened::kAbsent;
  }
  int found[kMostUvmDescriptors];
  int count = device.uvm_descriptors(found, kMostUvmDescriptors);
  if (count <= 0) {
    std::snprintf(why, bytes, "this process has not opened /dev/nvidia-uvm");
    return Opened::kAbsent;
  }
  count = count < kMostUvmDescriptors ? count : kMostUvmDescriptors;
  const int descriptor = device.open();
  if (descriptor < 0) {
    std::snprintf(why, bytes, "/dev/nvidia-uvm-tools: %s", std::strerror(-descriptor));
    return descriptor == -ENOENT ? Opened::kAbsent : Opened::kRefused;
  }
  // Shared and not a child's: the driver writes to these very pages, which a fork would else leave
  // to the child at the first write to them.
  const std::size_t ring_bytes = whole_pages(kRecords * kMostRecordBytes);
  const std::size_t all_bytes = ring_bytes + whole_pages(sizeof(deepum_uvm_control));
  void* const memory =
      ::mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::snprintf(why, bytes, "no memory for its queue: %s", std::strerror(errno));
    ::close(descriptor);
    return Opened::kRefused;
  }
  ::madvise(memory, all_bytes, MADV_DONTFORK);
  deepum_uvm_tracker tracker{};
  tracker.records = reinterpret_cast<std::uintptr_t>(memory);
  tracker.count = kRecords;
  tracker.control = tracker.records + ring_bytes;
  tracker.all_processors = 1;
  tracker.requested = layout->number;
  int error = 0;
  for (int i = 0; i < count; ++i) {
    tracker.uvm_descriptor = static_cast<std::uint32_t>(found[i]);
    tracker.status = DEEPUM_NV_ERR_ILLEGAL_ACTION;
    error = device.control(descriptor, layout->init_request, &tracker);
    if (error < 0 || tracker.status != DEEPUM_NV_ERR_ILLEGAL_ACTION) {
      break;
    }
  }
  struct stat file{};
  // 0: this driver knows of no choice.
  const bool granted = tracker.granted == 0 || tracker.granted == layout->number;
  if (error < 0 || tracker.status != DEEPUM_NV_OK || !granted || ::fstat(descriptor, &file) != 0) {
    if (!granted) {
      std::snprintf(why, bytes, "events of layout %u were granted, not of %u", tracker.granted,
                    layout->number);
    } else if (error < 0) {
      std::snprintf(why, bytes, "its queue was refused: %s", std::strerror(-error));
    } else {
      std::snprintf(why, bytes, "its queue was refused with NV_STATUS 0x%x", tracker.status);
    }
    ::close(descriptor);
    ::munmap(memory, all_bytes);
    return Opened::kRefused;
  }
  device_ = &device;
  layout_ = layout;
  descriptor_ = descriptor;
  uvm_descriptor_ = static_cast<int>(tracker.uvm_descriptor);
  file_device_ = file.st_dev;
  file_ = file.st_ino;
  memory_ = ring_ = static_cast<unsigned char*>(memory);
  memory_bytes_ = all_bytes;
  control_ = reinterpret_cast<deepum_uvm_control*>(memory_ + ring_bytes);
  get_ = 0;
  missing_ = kNowhere;
  open_queue.store(this);
  return Opened::kYes;
}

void UvmToolsQueue::close() noexcept {
  if (!is_open()) {
    return;
  }
  open_queue.store(nullptr);
  if (still_ours()) {
    ::close(descriptor_);
    ::munmap(memory_, memory_bytes_);
  }
  // Else somebody closed it, and its number may be another file's; were it only moved, the driver
  // would still write.
  descriptor_ = -1;
}

void UvmToolsQueue::close_in_child() const noexcept {
  if (still_ours()) {
    ::close(descriptor_);
  }
}

// Some programs close every descriptor they find.
bool UvmToolsQueue::still_ours() const noexcept {
  struct stat file{};
  return ::fstat(descriptor_, &file) == 0 && file.st_dev == file_device_ && file.st_ino == file_;
}

int UvmToolsQueue::change(unsigned long request) noexcept {
  if (!still_ours()) {
    return EBADF;
  }
  deepum_uvm_events events{};
  events.events = 1ull << DEEPUM_UVM_EVENT_GPU_FAULT;
  const int error = device_->control(descriptor_, request, &events);
  return error < 0 ? -error : static_cast<int>(events.status);
}

int UvmToolsQueue::enable() noexcept {
  for (const std::uint32_t end = put(); get_ != end; get_ = (get_ + 1) & (kRecords - 1)) {
    std::memset(place(get_), 0, layout_->record_bytes);
  }
  missing_ = kNowhere;
  set_get();
  return change(DEEPUM_UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS);
}

void UvmToolsQueue::deliver() noexcept {
  if (device_->deliver) {
    device_->deliver(descriptor_);
  }
}

int UvmToolsQueue::disable() noexcept {
  return change(DEEPUM_UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS);
}

bool UvmToolsQueue::uuids(unsigned char* table) noexcept {
  std::memset(table, 0, std::size_t{16} * DEEPUM_UVM_MOST_PROCESSORS);
  deepum_uvm_uuids request{};
  request.table = reinterpret_cast<std::uintptr_t>(table);
  if (device_->control(uvm_descriptor_, layout_->table_request, &request) < 0) {
    return false;
  }
  return (layout_->table_counts ? request.status_or_none : request.count_or_status) == DEEPUM_NV_OK;
}

std::uint32_t UvmToolsQueue::put() const noexcept {
  return std::atomic_ref(control_->put_behind).load(std::memory_order_acquire) & (kRecords - 1);
}

void UvmToolsQueue::set_get() noexcept {
  std::atomic_ref(control_->get_ahead).store(get_, std::memory_order_release);
  std::atomic_ref(control_->get_behind).store(get_, std::memory_order_release);
}

std::uint64_t UvmToolsQueue::dropped() const noexcept {
  return std::atomic_ref(control_->dropped[DEEPUM_UVM_EVENT_GPU_FAULT])
      .load(std::memory_order_relaxed);
}

void abandon_uvm_tools_in_child() noexcept {
  if (const UvmToolsQueue* const queue = open_queue.exchange(nullptr)) {
    queue->close_in_child();
  }
}

}  // namespace deepum::hooks
