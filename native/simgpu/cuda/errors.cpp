// Names and descriptions of error codes.
#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "cuda_api.hpp"

namespace {

struct ErrorName {
  int value;
  const char* name;
};

constexpr ErrorName kNames[] = {
#include "error_names.inc"
};

// The driver's own words where programs are known to show or compare them; the others are spelt
// from the name.
const std::map<int, const char*>& spoken() {
  static const std::map<int, const char*> words = {
      {CUDA_SUCCESS, "no error"},
      {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
      {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
      {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
      {CUDA_ERROR_DEINITIALIZED, "driver shutting down"},
      {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
      {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
      {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
      {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
      {CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"},
      {CUDA_ERROR_FILE_NOT_FOUND, "file not found"},
      {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
      {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
      {CUDA_ERROR_NOT_READY, "device not ready"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
      {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
      {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
      {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"},
      {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
      {CUDA_ERROR_NOT_PERMITTED, "operation not permitted"},
      {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
      {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
       "operation failed due to a previous error during capture"},
      {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
       "operation would make the legacy stream depend on a capturing blocking stream"},
      {CUDA_ERROR_UNKNOWN, "unknown error"},
  };
  return words;
}

const char* name_of(CUresult error) {
  for (const ErrorName& entry : kNames) {
    if (entry.value == static_cast<int>(error)) return entry.name;
  }
  return nullptr;
}

const std::map<int, std::string>& descriptions() {
  static const auto* const all = [] {
    auto* made = new std::map<int, std::string>;
    for (const ErrorName& entry : kNames) {
      const auto known = spoken().find(entry.value);
      if (known != spoken().end()) {
        made->emplace(entry.value, known->second);
        continue;
      }
      std::string words(
          std::string_view(entry.name).substr(std::string_view("CUDA_ERROR_").size()));
      for (char& c : words)
        c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      made->emplace(entry.value, std::move(words));
    }
    return made;
  }();
  return *all;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = name_of(error);
  return *pStr != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = descriptions().find(static_cast<int>(error));
  *pStr = found != descriptions().end() ? found->second.c_str() : nullptr;
  return *pStr != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
