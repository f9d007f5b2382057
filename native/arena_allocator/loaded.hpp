// Functions of libraries that the process has loaded. Nothing is loaded for them.
#pragma once

#include <dlfcn.h>

namespace deepum::arena_allocator {

// What a library of that name has, or what it depends on; else what any global one has; or nullptr.
// A name without a library: what is preloaded comes first, the library's own is last.
inline void* loaded(const char* library, const char* name) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = handle != nullptr ? dlsym(handle, name) : nullptr;
  return found != nullptr ? found : dlsym(RTLD_DEFAULT, name);
}

inline void* preloaded(const char* library, const char* name) noexcept {
  void* const found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? found : loaded(library, name);
}

}  // namespace deepum::arena_allocator
