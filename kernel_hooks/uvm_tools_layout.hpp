// Which layout the events of /dev/nvidia-uvm-tools have, by the driver's release, and how a record
// is read. Logic only.
#pragma once

#include <cstdint>
#include <cstring>

#include "uvm_tools_abi.h"

namespace deepum::hooks {

struct UvmFault {
  std::uint64_t address;
  std::uint16_t gpu;  // index into the table of UUIDs
  std::uint8_t type, access, client_type;

  // On a processor that reorders stores `put` may be seen before the record; a reader leaves zeros
  // behind.
  bool arrived() const noexcept { return type != 0 && address != 0 && access != 0; }
  // What the driver can have written, if the layout is the right one. Nothing else is asked for
  // than faults of GPUs.
  bool plausible() const noexcept {
    return type == DEEPUM_UVM_EVENT_GPU_FAULT && access <= DEEPUM_UVM_ACCESS_PREFETCH &&
           client_type >= 1 && client_type <= 2 && gpu >= 1 && gpu < DEEPUM_UVM_MOST_PROCESSORS;
  }
};

template <typename Record>
UvmFault read_uvm_fault(const void* place) noexcept {
  Record record;
  std::memcpy(&record, place, sizeof record);
  return {record.address, record.gpu, record.type, record.access, record.client_type};
}

struct UvmLayout {
  unsigned long init_request, table_request;
  std::uint32_t number;  // deepum_uvm_tracker.requested
  std::size_t record_bytes;
  bool table_counts;  // deepum_uvm_uuids has the count before the status
  UvmFault (*read)(const void* place) noexcept;
};

inline constexpr UvmLayout kUvmLayoutV1{DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER,
                                        DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE,
                                        1,
                                        sizeof(deepum_uvm_fault_v1),
                                        true,
                                        read_uvm_fault<deepum_uvm_fault_v1>};
inline constexpr UvmLayout kUvmLayoutV2{DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER_V2,
                                        DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2,
                                        2,
                                        sizeof(deepum_uvm_fault_v2),
                                        false,
                                        read_uvm_fault<deepum_uvm_fault_v2>};

// Those branches whose source was read (uvm_tools_abi.h), no other; null for them.
inline const UvmLayout* uvm_layout_of(const char* release) noexcept {
  unsigned branch = 0;
  for (; *release >= '0' && *release <= '9' && branch < 10'000; ++release) {
    branch = branch * 10 + static_cast<unsigned>(*release - '0');
  }
  switch (branch) {
    case 550:
    case 555:
      return &kUvmLayoutV1;
    case 565:
    case 570:
    case 575:
    case 580:
      return &kUvmLayoutV2;
    default:
      return nullptr;
  }
}
inline constexpr const char* kUvmBranches = "550, 555, 565, 570, 575 and 580";

}  // namespace deepum::hooks
