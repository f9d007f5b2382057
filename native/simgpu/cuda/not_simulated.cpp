#include "not_simulated.hpp"

#include <cstdio>
#include <mutex>
#include <set>

namespace deepum::simgpu {
namespace {

struct Said {
  std::mutex mutex;
  std::set<std::string> names;
};

Said& said() {
  // Outlives every destructor that may still call the driver.
  static auto* const instance = new Said;
  return *instance;
}

}  // namespace

CUresult not_simulated(const char* name) noexcept {
  if (first_time(name)) std::fprintf(stderr, "deepum-sim: %s is not simulated\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

bool first_time(const std::string& name) {
  const std::lock_guard guard(said().mutex);
  return said().names.insert(name).second;
}

std::vector<std::string> not_simulated_names() {
  const std::lock_guard guard(said().mutex);
  return {said().names.begin(), said().names.end()};
}

}  // namespace deepum::simgpu
