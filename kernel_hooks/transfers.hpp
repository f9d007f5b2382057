// What copies and memsets have in common: an execution whose accesses have a known direction.
#pragma once

#include "execution.hpp"
#include "launches.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "streams.hpp"
#include "waits.hpp"

namespace deepum::hooks {

struct Bytes {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
inline Bytes bytes_at(CUdeviceptr address, std::uint64_t bytes) noexcept {
  return {address, bytes};
}
inline Bytes bytes_at(const void* address, std::uint64_t bytes) noexcept {
  return {reinterpret_cast<std::uint64_t>(address), bytes};
}

// Host memory that the driver does not know: it copies to it by way of its own, and waits.
inline bool is_pageable(const Bytes& at) noexcept {
  unsigned type = 0;
  const auto& ask = real<false>().cuPointerGetAttribute;
  Inside guard;
  return at.bytes != 0 && ask &&
         ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at.address) != CUDA_SUCCESS;
}

// Whether a call may wait for the GPU before it returns: a synchronous memset does where memory is
// managed, and is asynchronous in device memory.
enum class Waits { kNever, kIfManaged, kAlways };

// Nothing is reported for a transfer that touches no managed memory, nor on a capturing stream.
template <typename F, typename... A>
CUresult transfer_as(std::uint8_t flags, std::uint64_t identity, const StreamRef& stream,
                     Waits waits, Bytes written, Bytes read, const Function<F>& function,
                     A... arguments) noexcept {
  if (stream.device < 0 || capturing(stream)) {
    return forward(function, arguments...);
  }
  std::uint64_t sequence = 0;
  bool reported = false;
  {
    Execution execution(mix(identity, written.bytes ? written.bytes : read.bytes),
                        static_cast<std::uint8_t>(DEEPUM_EXECUTE_COPY | flags));
    execution.add_bytes(written.address, written.bytes, Execution::Access::kWrite, 1);
    execution.add_bytes(read.address, read.bytes, Execution::Access::kRead, 2);
    reported = !execution.empty();
    if (reported) {
      sequence = execution.emit(stream);
    }
  }
  if (reported) {
    runtime::before_execute(stream.device, stream.handle, stream.id, sequence);
  }
  const bool blocks = waits == Waits::kAlways;
  if (blocks) {
    about_to_wait(DEEPUM_ALL_STREAMS, stream.device);
  }
  const bool locked = blocks || (waits == Waits::kIfManaged && reported);
  if (runtime::waits_at_gates() && (locked || is_pageable(written))) {
    runtime::before_locked_wait();
  }
  const CUresult result = forward(function, arguments...);
  if (reported && result == CUDA_SUCCESS) {
    runtime::after_execute(stream.device, stream.handle, stream.id);
  }
  if (blocks) {
    faults_at_rest();
  }
  return result;
}

template <typename F, typename... A>
CUresult transfer(std::uint64_t identity, const StreamRef& stream, bool blocks, Bytes written,
                  Bytes read, const Function<F>& function, A... arguments) noexcept {
  return transfer_as(0, identity, stream, blocks ? Waits::kAlways : Waits::kNever, written, read,
                     function, arguments...);
}

template <typename F, typename... A>
CUresult fill(std::uint64_t identity, const StreamRef& stream, Waits waits, Bytes written,
              const Function<F>& function, A... arguments) noexcept {
  return transfer_as(DEEPUM_EXECUTE_MEMSET, identity, stream, waits, written, Bytes{}, function,
                     arguments...);
}

}  // namespace deepum::hooks
