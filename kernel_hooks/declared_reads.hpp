// What the calling thread has declared to be only read by what it launches (declare_reads.h).
#pragma once

#include <cstdint>

#include "declare_reads.h"

namespace deepum::hooks {

struct DeclaredReads {
  const deepum_address_range* ranges = nullptr;
  std::uint32_t count = 0;

  bool empty() const noexcept { return count == 0; }
  bool contain(std::uint64_t address) const noexcept;
};
inline constinit thread_local DeclaredReads declared_reads [[gnu::tls_model("initial-exec")]];

// The function of ours that cuGetProcAddress answers this name with; null: it is none of ours.
void* declaring_function(const char* name) noexcept;

void abandon_declared_in_child() noexcept;

}  // namespace deepum::hooks
