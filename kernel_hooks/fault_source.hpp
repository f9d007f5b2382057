// Where faults of the GPU are learned from: one interface for every source that a driver may offer. Today that is CUPTI's activity
// records; the event queue of /dev/nvidia-uvm-tools, whose private ABI is to be gated on the driver's version, would be another.
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

// One thread at a time calls a source, which may call the driver and take milliseconds. Nothing here throws but take.
class FaultSource {
 public:
  enum class Start {
    kOn,
    kAbsent,  // this machine or this program has none
    kHeld,    // somebody else has it, such as a profiler
    kRefused  // it answered with an error
  };

  virtual const char* name() const noexcept = 0;
  // Faults are observed from here on. The driver is initialised and a context current. May be called again after stop().
  virtual Start start() noexcept = 0;
  virtual const char* why() const noexcept = 0;  // the latest start did not succeed: a few words, valid until the next
  // Adds what the driver has delivered since the last call, in no particular order. Throws std::bad_alloc.
  virtual void take(std::vector<ObservedFault>& faults) = 0;
  virtual void stop() noexcept = 0;

 protected:
  ~FaultSource() = default;
};

FaultSource& cupti_fault_source() noexcept;  // never destroyed

}  // namespace deepum::hooks
