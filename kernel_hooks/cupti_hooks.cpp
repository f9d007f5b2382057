// CUPTI's functions by which a profiler makes it its own: interposed so that our use of it ends
// before the profiler's begins. Programs that are linked against CUPTI reach the exported symbols,
// those that ask dlsym the other ones, each with the library that it meant.
#include <atomic>
#include <cstring>

#include "cupti_library.hpp"
#include "observed_faults.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

using Subscribe = int(void**, deepum_cupti_callback, void*);
using SubscribeV2 = int(void**, deepum_cupti_callback, void*, void*);
using RegisterCallbacks = int(deepum_cupti_buffer_requested, deepum_cupti_buffer_completed);

// As dlsym last answered.
std::atomic<void*> real_functions[3];

template <typename F, typename... A>
int handed_on(void* function, A... arguments) noexcept {
  give_cupti_away();
  return function ? reinterpret_cast<F*>(function)(arguments...) : DEEPUM_CUPTI_ERROR_UNKNOWN;
}

int subscribe(void** subscriber, deepum_cupti_callback callback, void* data) {
  return handed_on<Subscribe>(real_functions[0].load(), subscriber, callback, data);
}
int subscribe_v2(void** subscriber, deepum_cupti_callback callback, void* data, void* parameters) {
  return handed_on<SubscribeV2>(real_functions[1].load(), subscriber, callback, data, parameters);
}
int register_callbacks(deepum_cupti_buffer_requested requested,
                       deepum_cupti_buffer_completed completed) {
  return handed_on<RegisterCallbacks>(real_functions[2].load(), requested, completed);
}

constexpr struct {
  const char* name;
  void* (*hook)();
} kHooks[] = {
    {"cuptiSubscribe", [] { return reinterpret_cast<void*>(subscribe); }},
    {"cuptiSubscribe_v2", [] { return reinterpret_cast<void*>(subscribe_v2); }},
    {"cuptiActivityRegisterCallbacks", [] { return reinterpret_cast<void*>(register_callbacks); }},
};

}  // namespace

void* cupti_hook_of_symbol(const char* symbol) noexcept {
  for (const auto& one : kHooks) {
    if (std::strcmp(one.name, symbol) == 0) {
      return one.hook();
    }
  }
  return nullptr;
}

void cupti_symbol_found(const void* hook, void* real) noexcept {
  for (std::size_t i = 0; i < std::size(kHooks); ++i) {
    if (kHooks[i].hook() == hook) {
      real_functions[i].store(real);
    }
  }
}

}  // namespace deepum::hooks

extern "C" {

DEEPUM_EXPORT int cuptiSubscribe(void** subscriber, deepum_cupti_callback callback, void* data) {
  using namespace deepum::hooks;
  return handed_on<Subscribe>(cupti_function("cuptiSubscribe"), subscriber, callback, data);
}

DEEPUM_EXPORT int cuptiSubscribe_v2(void** subscriber, deepum_cupti_callback callback, void* data,
                                    void* parameters) {
  using namespace deepum::hooks;
  return handed_on<SubscribeV2>(cupti_function("cuptiSubscribe_v2"), subscriber, callback, data,
                                parameters);
}

DEEPUM_EXPORT int cuptiActivityRegisterCallbacks(deepum_cupti_buffer_requested requested,
                                                 deepum_cupti_buffer_completed completed) {
  using namespace deepum::hooks;
  return handed_on<RegisterCallbacks>(cupti_function("cuptiActivityRegisterCallbacks"), requested,
                                      completed);
}
}
