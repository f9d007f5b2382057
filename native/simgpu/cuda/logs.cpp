// The driver's log messages: there are none. Callbacks are kept, so that a program which takes them
// back finds its own.
#include <mutex>
#include <set>

#include "cuda_api.hpp"

struct CUlogsCallbackEntry_st {};

namespace {

struct Callbacks {
  std::mutex mutex;
  std::set<CUlogsCallbackHandle> registered;
};

Callbacks& callbacks() {
  // Outlives every destructor that may still call the driver.
  static auto* const instance = new Callbacks;
  return *instance;
}

}  // namespace

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void*,
                                CUlogsCallbackHandle* callback_out) {
  if (callbackFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(callbacks().mutex);
  auto* const made = new CUlogsCallbackEntry_st;
  callbacks().registered.insert(made);
  if (callback_out != nullptr) *callback_out = made;
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  const std::lock_guard guard(callbacks().mutex);
  if (callbacks().registered.erase(callback) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete callback;
  return CUDA_SUCCESS;
}
