// Programs and libraries with the CUDA runtime linked in statically, which is nvcc's default. That
// runtime accepts NVIDIA's own driver only, so it has to be left out: the entries of its public
// functions become jumps to the stand-in's functions of the same names. Where they are, the
// object's symbol table says; in a stripped object they are not found, and the driver says so when
// that runtime asks for it (cuda/export_table.cpp).
//
// It has to happen before the object's own constructors run, which register its kernels. For all
// that is there at the start this library's constructor comes first (-z initfirst). For what is
// loaded later the loader calls the function that <link.h> names in r_brk, a debugger's breakpoint,
// once the objects are mapped and before their constructors run.
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "elf_functions.hpp"
#include "functions.h"
#include "jumps.hpp"

#pragma weak deepum_sim_cudart12_functions  // null where libcudart.so.12 is not loaded

namespace deepum::simgpu::cudart {
namespace {

// Functions that the runtime of every release has. A program that defines one of them itself, for a
// test, say, does not have them all.
constexpr std::string_view kInEvery[] = {"__cudaRegisterFatBinary", "cudaLaunchKernel",
                                         "cudaMalloc"};

class Functions {
 public:
  explicit Functions(const deepum_sim_function* first) : first_(first), last_(first) {
    while (last_ != nullptr && last_->name != nullptr) ++last_;
  }
  const void* find(std::string_view name) const {
    const auto* const found = std::lower_bound(
        first_, last_, name, [](const auto& f, std::string_view key) { return f.name < key; });
    return found != last_ && found->name == name ? found->function : nullptr;
  }

 private:
  const deepum_sim_function* first_;
  const deepum_sim_function* last_;
};

struct Majors {
  Functions of13{deepum_sim_cudart13_functions};
  Functions of12{deepum_sim_cudart12_functions};

  const Functions& of(const std::vector<ElfFile::Function>& functions) const {
    int more12 = 0;
    for (const ElfFile::Function& f : functions)
      more12 += (of12.find(f.name) != nullptr) - (of13.find(f.name) != nullptr);
    return more12 > 0 ? of12 : of13;
  }
};

const char* redirect(const ElfFile& file, ElfW(Addr) moved,
                     const std::vector<ElfFile::Function>& found, const Functions& functions) {
  std::vector<Jump> jumps;
  for (const ElfFile::Function& f : found) {
    const void* const to = functions.find(f.name);
    if (to == nullptr) continue;  // of the other major alone
    auto* const entry = reinterpret_cast<std::byte*>(moved + f.value);
    const std::byte* const expected = file.code(f.value, kJumpBytes);
    // Compilers begin functions at multiples of 16, so that one of fewer bytes has the space up to
    // the next.
    if (expected == nullptr || (f.bytes < kJumpBytes && f.value % 16 != 0) ||
        std::memcmp(entry, expected, kJumpBytes) != 0)
      return "its code is not what its file says, perhaps for a debugger's breakpoint";
    jumps.push_back({entry, to});
  }
  return write_jumps(jumps);
}

// What asks for more than a runtime. NCCL wants NVIDIA's management library (libnvidia-ml) and
// kernels that talk to each other; with NVIDIA's runtime left in it, the driver says that it does
// not run, before NCCL says something else. JAX looks for /dev/nvidia0 before it asks a driver, and
// takes the CPU without a word.
bool left_alone(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const std::string_view name = slash != nullptr ? slash + 1 : path;
  if (name.starts_with("xla_cuda_plugin.so")) {
    const char* const platforms = std::getenv("JAX_PLATFORMS");
    if (platforms == nullptr || std::string_view(platforms) != "cpu") {
      std::fprintf(stderr,
                   "deepum-sim: error: %s: JAX does not run on the simulated GPU, it computes on "
                   "the CPU or stops; use a real GPU\n",
                   path);
    }
    return true;
  }
  return name.starts_with("libnccl.so");
}

void look_at(const link_map& object, const Majors& majors) {
  const bool executable = object.l_name == nullptr || object.l_name[0] == '\0';
  // Without a slash it is the kernel's own, which has no file.
  if (!executable && (std::strchr(object.l_name, '/') == nullptr || left_alone(object.l_name)))
    return;
  const ElfFile file(executable ? "/proc/self/exe" : object.l_name);
  // It has the stand-in; libraries of PyTorch have symbol tables of 100 MB.
  if (file.needs("libcudart.so.")) return;
  const std::vector<ElfFile::Function> found = file.own_functions([&](std::string_view name) {
    return majors.of13.find(name) != nullptr || majors.of12.find(name) != nullptr;
  });
  const auto has = [&](std::string_view name) {
    return std::any_of(found.begin(), found.end(),
                       [&](const ElfFile::Function& f) { return f.name == name; });
  };
  if (!std::all_of(std::begin(kInEvery), std::end(kInEvery), has)) return;
  if (const char* const failure = redirect(file, object.l_addr, found, majors.of(found))) {
    char path[4096] = "";  // libc may not know the program's name yet
    if (executable)
      path[std::max<ssize_t>(readlink("/proc/self/exe", path, sizeof path - 1), 0)] = '\0';
    std::fprintf(stderr,
                 "deepum-sim: error: %s: the CUDA runtime that is linked into it cannot be "
                 "replaced by the simulated GPU's: %s; link it with "
                 "-cudart shared\n",
                 executable ? path : object.l_name, failure);
  }
}

// Objects that were looked at, by their dynamic sections, sorted.
std::vector<const void*>& seen() {
  static auto* const objects = new std::vector<const void*>;
  return *objects;
}

void look_at_new_objects() try {
  static constinit std::mutex mutex;
  const std::lock_guard guard(mutex);
  std::vector<const void*> present;
  std::vector<const link_map*> fresh;
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    present.push_back(object->l_ld);
    if (!std::binary_search(seen().begin(), seen().end(), static_cast<const void*>(object->l_ld)))
      fresh.push_back(object);
  }
  std::sort(present.begin(), present.end());
  seen() = std::move(present);
  if (fresh.empty()) return;
  const Majors majors;
  for (const link_map* object : fresh) look_at(*object, majors);
} catch (...) {  // out of memory, in the middle of the loader; those objects stay as they are
}

// In place of the loader's function that does nothing.
void objects_changed() {
  if (_r_debug.r_state != r_debug::RT_CONSISTENT) return;
  const int before = errno;
  look_at_new_objects();
  errno = before;
}

// Where that function is not an empty one (a debugger is there), libraries that are loaded later
// are left as they are.
void watch_loader() {
  auto* entry = reinterpret_cast<std::byte*>(_r_debug.r_brk);
  if (entry == nullptr) return;
#if defined(__x86_64__)
  constexpr unsigned char kMark[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  constexpr std::byte kReturn{0xc3};
  const bool marked = std::memcmp(entry, kMark, sizeof kMark) == 0;
  if (entry[marked ? sizeof kMark : 0] != kReturn ||
      reinterpret_cast<std::uintptr_t>(entry) % 16 != 0)
    return;
#elif defined(__aarch64__)
  constexpr unsigned char kMark[] = {0x5f, 0x24, 0x03, 0xd5};    // bti c
  constexpr unsigned char kReturn[] = {0xc0, 0x03, 0x5f, 0xd6};  // ret
  if (std::memcmp(entry, kReturn, 4) != 0 &&
      (std::memcmp(entry, kMark, 4) != 0 || std::memcmp(entry + 4, kReturn, 4) != 0))
    return;
#endif
  write_jumps({{entry, reinterpret_cast<const void*>(&objects_changed)}});
}

// It may come before libc's own, which knows the environment: dlopen() here would run that one,
// without it.
[[gnu::constructor]] void start() {
  look_at_new_objects();
  watch_loader();
}

}  // namespace
}  // namespace deepum::simgpu::cudart
