// Where faults of the GPU are learned from: one interface for every source that a driver may offer.
// There are CUPTI's activity records, and the event queue of /dev/nvidia-uvm-tools.
#pragma once

#include <cstdint>
#include <vector>

namespace deepum::hooks {

struct ObservedFault {
  std::uint64_t address;  // of a page that faulted
  std::uint64_t faults;   // as the source counts
  std::uint32_t device;   // CUDA ordinal
  std::uint8_t access;    // enum deepum_fault_access, or'ed; 0: the source does not tell
};

// One thread at a time calls a source, which may call the driver and take milliseconds. Nothing
// here throws but take.
class FaultSource {
 public:
  enum class Start {
    kOn,
    kAbsent,  // this machine or this program has none
    kHeld,    // somebody else has it, such as a profiler
    kRefused  // it answered with an error
  };

  virtual const char* name() const noexcept = 0;
  // Faults are observed from here on. The driver is initialised and a context current. May be
  // called again after stop().
  virtual Start start() noexcept = 0;
  // The latest start or take did not succeed: a few words, valid until the next.
  virtual const char* why() const noexcept = 0;
  // Adds what the driver has delivered since the last call, in no particular order. False: it makes
  // no sense, nothing more will come, and why() says so; start() will refuse. Throws
  // std::bad_alloc.
  virtual bool take(std::vector<ObservedFault>& faults) = 0;
  virtual void stop() noexcept = 0;

 protected:
  ~FaultSource() = default;
};

FaultSource& cupti_fault_source() noexcept;  // never destroyed
FaultSource& uvm_tools_fault_source() noexcept;
// In a forked child, whose parent's queue it is; safe after a fork of a process with threads.
void abandon_uvm_tools_in_child() noexcept;

}  // namespace deepum::hooks
