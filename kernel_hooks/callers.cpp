#include "callers.hpp"

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <vector>

#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "shim_settings.hpp"

namespace deepum::hooks {
namespace {

using runtime::PlainRules;

// libcuda and libcudart stand between every program and us; UCX's libucm puts itself in front of
// all allocations of a process to learn of them (https://github.com/openucx/ucx, src/ucm/cuda).
constexpr const char* kHandOn[] = {"libcuda.so", "libcudart.so", "libucm.so", "libucm_cuda.so"};
constexpr int kMostFrames = 24;

struct Code {
  std::uintptr_t begin;
  std::uintptr_t end;
  PlainRules::Set named;
  bool hands_on;
};

bool by_address(const Code& a, const Code& b) noexcept { return a.begin < b.begin; }

// The executable parts of what is loaded, by address; read again when something was loaded or
// unloaded since.
struct Objects {
  ForkableMutex mutex;
  std::vector<Code> code;
  unsigned long long loaded = 0;
  unsigned long long unloaded = 0;
  PlainRules::Set named = 0;  // by any of them
};
Objects& objects() noexcept { return immortal<Objects>(); }

void note(Objects& all, const dl_phdr_info& info) {
  const char* slash = std::strrchr(info.dlpi_name, '/');
  const char* file = slash ? slash + 1 : info.dlpi_name;
  bool hands_on = false;
  for (const char* name : kHandOn) {
    hands_on = hands_on || std::strncmp(file, name, std::strlen(name)) == 0;
  }
  const PlainRules::Set named = runtime::settings().plain_memory.naming(file);
  const auto ours = reinterpret_cast<std::uintptr_t>(&objects);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& part = info.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X)) {
      const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
      const std::uintptr_t end = begin + part.p_memsz;
      all.code.push_back({begin, end, named, hands_on || (ours >= begin && ours < end)});
      all.named |= named;
    }
  }
}

struct Reading {
  Objects& all;
  bool first = true;
};

// The linker's counters come with every object: if the first one's are as they were, so is all the
// rest.
int read_object(dl_phdr_info* info, std::size_t, void* data) noexcept try {
  auto& reading = *static_cast<Reading*>(data);
  Objects& all = reading.all;
  if (reading.first) {
    reading.first = false;
    if (!all.code.empty() && info->dlpi_adds == all.loaded && info->dlpi_subs == all.unloaded) {
      return 1;
    }
    all.loaded = info->dlpi_adds;
    all.unloaded = info->dlpi_subs;
    all.named = 0;
    all.code.clear();
  }
  note(all, *info);
  return 0;
} catch (...) {
  static_cast<Reading*>(data)->all.code.clear();  // out of host memory; next time again
  return 1;
}

void refresh(Objects& all) noexcept {
  Reading reading{all};
  dl_iterate_phdr(read_object, &reading);
  if (!std::is_sorted(all.code.begin(), all.code.end(), by_address)) {
    std::sort(all.code.begin(), all.code.end(), by_address);
  }
}

const Code* holding(const Objects& all, std::uintptr_t address) noexcept {
  const auto after =
      std::upper_bound(all.code.begin(), all.code.end(), address,
                       [](std::uintptr_t sought, const Code& code) { return sought < code.begin; });
  return after != all.code.begin() && address < std::prev(after)->end ? &*std::prev(after)
                                                                      : nullptr;
}

struct Walk {
  const Objects& all;
  PlainRules::Set named = 0;
  int frames = 0;
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* data) noexcept {
  auto& walk = *static_cast<Walk*>(data);
  int before = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &before);
  // A call may be the last thing in a function.
  const Code* code = holding(walk.all, before ? address : address - 1);
  if (code && code->hands_on && ++walk.frames < kMostFrames) {
    return _URC_NO_REASON;
  }
  walk.named = code ? code->named : 0;
  return _URC_END_OF_STACK;
}

}  // namespace

PlainRules::Set rules_naming_caller(PlainRules::Set wanted) noexcept {
  if (wanted == 0) {
    return 0;
  }
  Objects& all = objects();
  const std::lock_guard lock(all.mutex);
  refresh(all);
  if ((all.named & wanted) == 0) {
    return 0;
  }
  Walk walk{all};
  _Unwind_Backtrace(visit_frame, &walk);
  return walk.named & wanted;
}

void abandon_callers_in_child() noexcept {
  Objects& all = objects();
  if (!all.mutex.renew()) {
    all.code.clear();
  }
}

}  // namespace deepum::hooks
