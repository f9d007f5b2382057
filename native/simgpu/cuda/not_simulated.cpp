#include "not_simulated.hpp"

#include <cstdio>
#include <mutex>
#include <set>

namespace deepum::simgpu {
namespace {

struct ReportedNames {
  std::mutex mutex;
  std::set<std::string> names;
};

ReportedNames& reported_names() {
  // Outlives every destructor that may still call the driver.
  static auto* const instance = new ReportedNames;
  return *instance;
}

}  // namespace

CUresult not_simulated(const char* name) noexcept {
  if (first_time(name)) std::fprintf(stderr, "deepum-sim: %s is not simulated\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

bool first_time(const std::string& name) {
  const std::lock_guard guard(reported_names().mutex);
  return reported_names().names.insert(name).second;
}

std::vector<std::string> not_simulated_names() {
  const std::lock_guard guard(reported_names().mutex);
  return {reported_names().names.begin(), reported_names().names.end()};
}

}  // namespace deepum::simgpu
