#include "sharing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

#include "driver.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "memory.hpp"
#include "message.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "size_text.hpp"

namespace deepum::hooks {
namespace {

constexpr std::size_t kMostWarnings = 16;

struct Warned {
  ForkableMutex mutex;
  std::array<std::uint64_t, kMostWarnings> sizes{};
  std::size_t count = 0;
};
Warned& warned() noexcept { return immortal<Warned>(); }

bool is_new(std::uint64_t bytes) noexcept {
  Warned& all = warned();
  const std::lock_guard lock(all.mutex);
  const auto end = all.sizes.begin() + static_cast<std::ptrdiff_t>(all.count);
  if (all.count == kMostWarnings || std::find(all.sizes.begin(), end, bytes) != end) {
    return false;
  }
  all.sizes[all.count++] = bytes;
  return true;
}

// A driver that does not know the question may be able.
bool able(CUdevice_attribute ability, std::uint32_t device) noexcept {
  const runtime::Driver& driver = runtime::driver();
  int answer = 1;
  Inside guard;
  return !driver.DeviceGetAttribute ||
         driver.DeviceGetAttribute(&answer, ability, static_cast<CUdevice>(device)) !=
             CUDA_SUCCESS ||
         answer != 0;
}

}  // namespace

void tell_if_refused(const char* what, CUdeviceptr address, CUresult result,
                     const Sharing& wanted) noexcept {
  if (result == CUDA_SUCCESS) {
    return;
  }
  const auto allocation = disguised(address);
  if (!allocation || !able(wanted.ability, allocation->device)) {
    return;
  }
  runtime::handle_refused();
  if (is_new(allocation->bytes)) {
    const runtime::SizeText size = runtime::format_size(allocation->bytes);
    runtime::say(runtime::Level::kWarning,
                 "warning: %s: an allocation of %s is managed memory, which cannot be %s; "
                 "DEEPUM_PLAIN_MEMORY=%s (--plain-memory %s) keeps "
                 "allocations of this size device memory",
                 what, size.text, wanted.impossible, size.text, size.text);
  }
}

void abandon_sharing_in_child() noexcept { warned().mutex.renew(); }

}  // namespace deepum::hooks
