// The mover's operations as ranges of NVTX, on its thread's row of a profiler's timeline: from its
// call of the driver until that returns. Only where a profiler has its library loaded by NVTX's
// own rule, the variable NVTX_INJECTION64_PATH; nothing is loaded, and no range made, elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mover_backend.hpp"
#include "records.h"

struct nvtxDomainRegistration_st;  // nvtx3/nvToolsExt.h

namespace deepum::runtime {

// Of the domain "deepum": the payload is in bytes, the category says where these go, and the
// message what is done and which event decided it (docs/watching.md, In a profiler).
class OperationRanges {
 public:
  // Null: there is no profiler. The first call loads it.
  static const OperationRanges* instance() noexcept;

  void begin(const deepum_command& first, std::size_t commands,
             std::span<const mover::Range> ranges) const noexcept;
  void end() const noexcept;

 private:
  explicit OperationRanges(nvtxDomainRegistration_st* domain) noexcept;
  static std::optional<OperationRanges> open() noexcept;

  nvtxDomainRegistration_st* domain_;
};

}  // namespace deepum::runtime
