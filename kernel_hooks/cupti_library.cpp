#include "cupti_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

void* open(const char* path, int flags) noexcept {
  return dlopen(path, RTLD_LAZY | RTLD_LOCAL | flags);
}

// The folder of the libcudart that the program has loaded.
struct Runtime {
  char folder[4000] = "";
};
int look_for_runtime(dl_phdr_info* info, std::size_t, void* data) noexcept {
  const char* const slash = info->dlpi_name ? std::strrchr(info->dlpi_name, '/') : nullptr;
  if (!slash || std::strncmp(slash + 1, "libcudart.so", 12) != 0) {
    return 0;
  }
  auto* const found = static_cast<Runtime*>(data);
  std::snprintf(found->folder, sizeof found->folder, "%.*s",
                static_cast<int>(slash - info->dlpi_name), info->dlpi_name);
  return 1;
}

void* open_in(const char* folder, const char* below) noexcept {
  if (!folder || !*folder) {
    return nullptr;
  }
  for (const char* name : kNames) {
    char path[4096];
    const int length = std::snprintf(path, sizeof path, "%s%s/%s", folder, below, name);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
      return nullptr;
    }
    if (void* library = open(path, 0)) {
      return library;
    }
  }
  return nullptr;
}

void* find_library() noexcept {
  for (const int flags : {RTLD_NOLOAD, 0}) {  // one that is loaded first, whatever its version
    for (const char* name : kNames) {
      if (void* library = open(name, flags)) {
        return library;
      }
    }
  }
  // Beside libcudart in a toolkit and in CUDA 13's wheels; in CUDA 12's it has a folder of its own.
  Runtime runtime;
  dl_iterate_phdr(look_for_runtime, &runtime);
  for (const char* below : {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib"}) {
    if (void* library = open_in(runtime.folder, below)) {
      return library;
    }
  }
  for (const char* root : {static_cast<const char*>(std::getenv("CUDA_HOME")), "/usr/local/cuda"}) {
    for (const char* below : {"/extras/CUPTI/lib64", "/lib64"}) {
      if (void* library = open_in(root, below)) {
        return library;
      }
    }
  }
  return nullptr;
}

template <typename F>
bool find(void* library, const char* name, F** function) noexcept {
  *function = reinterpret_cast<F*>(real_dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

// Not under a lock of ours: a loader's constructors may call CUDA. One thread at a time comes here.
const Cupti* load_cupti() noexcept {
  static constinit Cupti functions;
  static constinit bool initialised = false, complete = false;
  if (!initialised) {
    initialised = true;
    void* const library = find_library();  // never closed
    complete =
        library && find(library, "cuptiSubscribe", &functions.Subscribe) &&
        find(library, "cuptiUnsubscribe", &functions.Unsubscribe) &&
        find(library, "cuptiActivityRegisterCallbacks", &functions.ActivityRegisterCallbacks) &&
        find(library, "cuptiActivityConfigureUnifiedMemoryCounter",
             &functions.ActivityConfigureUnifiedMemoryCounter) &&
        find(library, "cuptiActivityEnable", &functions.ActivityEnable) &&
        find(library, "cuptiActivityDisable", &functions.ActivityDisable) &&
        find(library, "cuptiActivityFlushAll", &functions.ActivityFlushAll) &&
        find(library, "cuptiActivityGetNextRecord", &functions.ActivityGetNextRecord) &&
        find(library, "cuptiActivityGetNumDroppedRecords", &functions.ActivityGetNumDroppedRecords);
  }
  return complete ? &functions : nullptr;
}

void* cupti_function(const char* name) noexcept {
  if (void* next = real_dlsym(RTLD_NEXT, name)) {
    return next;
  }
  for (const char* library : kNames) {
    if (void* const loaded = open(library, RTLD_NOLOAD)) {
      return real_dlsym(loaded, name);
    }
  }
  return nullptr;
}

}  // namespace deepum::hooks
