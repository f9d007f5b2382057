// An event queue of /dev/nvidia-uvm-tools: a ring that the driver fills and one thread of ours at a
// time empties, without a lock between.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "uvm_tools_device.hpp"
#include "uvm_tools_layout.hpp"

namespace deepum::hooks {

class UvmToolsQueue {
 public:
  enum class Opened { kYes, kAbsent, kRefused };

  bool is_open() const noexcept { return descriptor_ >= 0; }
  // The faults of this process's address space, from enable() on. Otherwise nothing is kept, and
  // `why` says in a few words what is missing.
  Opened open(const deepum_uvm_tools_table& device, char* why, std::size_t bytes) noexcept;
  void close() noexcept;  // the driver lets go of the ring
  // A forked child's copy of the descriptor; the ring is not there.
  void close_in_child() const noexcept;

  // An errno or an NV_STATUS, 0: done. What had come before is forgotten by enable().
  int enable() noexcept;
  int disable() noexcept;
  // Processors' UUIDs, 16 bytes each, DEEPUM_UVM_MOST_PROCESSORS of them; zeros for those that are
  // not there. False: refused.
  bool uuids(unsigned char* table) noexcept;

  // What has happened is in the ring afterwards, where the driver does not see to that itself.
  void deliver() noexcept;
  // Calls back with each fault that has come. False: what is there is no record of a fault, so that
  // the layout is not what it was taken for. Throws what `each` throws; the fault at hand and those
  // before it are gone then.
  template <typename Each>
  bool read(Each each);
  std::uint64_t dropped() const noexcept;  // faults that found no room, since open()

 private:
  // Of 10 ms of faults, at 256 in 40 us (docs/um-model.md).
  static constexpr std::uint32_t kRecords = 1u << 16;
  static constexpr std::uint32_t kNowhere = ~0u;

  int change(unsigned long request) noexcept;
  bool still_ours() const noexcept;
  std::uint32_t put() const noexcept;
  void set_get() noexcept;
  unsigned char* place(std::uint32_t index) const noexcept {
    return ring_ + index * layout_->record_bytes;
  }

  const deepum_uvm_tools_table* device_ = nullptr;
  const UvmLayout* layout_ = nullptr;
  int descriptor_ = -1, uvm_descriptor_ = -1;
  dev_t file_device_ = 0;
  ino_t file_ = 0;
  unsigned char* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  unsigned char* ring_ = nullptr;
  deepum_uvm_control* control_ = nullptr;
  std::uint32_t get_ = 0;
  std::uint32_t missing_ = kNowhere;  // where the latest look found a record that had not arrived
};

template <typename Each>
bool UvmToolsQueue::read(Each each) {
  struct Done {
    UvmToolsQueue& queue;
    ~Done() { queue.set_get(); }
  } done{*this};
  for (const std::uint32_t end = put(); get_ != end;) {
    unsigned char* const record = place(get_);
    const UvmFault fault = layout_->read(record);
    if (!fault.arrived()) {
      const bool again = missing_ == get_;
      missing_ = get_;
      return !again;
    }
    if (!fault.plausible()) {
      return false;
    }
    std::memset(record, 0, layout_->record_bytes);
    get_ = (get_ + 1) & (kRecords - 1);
    each(fault);
  }
  missing_ = kNowhere;
  return true;
}

}  // namespace deepum::hooks
