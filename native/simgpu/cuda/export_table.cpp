// cuGetExportTable: private tables of NVIDIA's driver, of which there are none here. A real CUDA
// runtime insists on them, be it a library of its own or linked into the library that asks. The
// stand-in for libcudart takes the place of the first, and of the second where it finds its
// functions (cudart/static_runtime.cpp); what asks nevertheless does not run, and the line says
// why.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "cuda_api.hpp"
#include "not_simulated.hpp"

using namespace deepum::simgpu;

namespace {

struct Advice {
  const char* beginning;  // of the library's name
  const char* text;       // null: nothing is to be said
};
constexpr Advice kAdvice[] = {
    {"libnvrtc", nullptr},  // it asks, and does without
    {"libnvJitLink", nullptr},
    {"libnccl.so", "use PyTorch's gloo backend here, or a real GPU"},
    {"libcudart.so",
     "use CUDA 12 or 13, whose runtimes deepum run replaces by the simulated GPU's"},
    // NVIDIA's libraries and PyTorch's, which nobody links anew.
    {"libcu", "do on the CPU what needs it, or use a real GPU"},
    {"libnv", "do on the CPU what needs it, or use a real GPU"},
};

const char* advice(const char* name) {
  for (const Advice& known : kAdvice) {
    if (std::strncmp(name, known.beginning, std::strlen(known.beginning)) == 0) return known.text;
  }
  return "link it with -cudart shared, or do not strip it, or use a real GPU";
}

}  // namespace

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid*) {
  if (ppExportTable != nullptr) *ppExportTable = nullptr;
  Dl_info asking{};
  const char* const path =
      dladdr(__builtin_return_address(0), &asking) != 0 && asking.dli_fname != nullptr
          ? asking.dli_fname
          : "a program";
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  const char* const next = advice(name);
  if (next != nullptr && first_time(std::string("cuGetExportTable for ") + name)) {
    std::fprintf(stderr,
                 "deepum-sim: error: %s: has NVIDIA's CUDA runtime in it, which accepts NVIDIA's "
                 "own driver only; %s\n",
                 path, next);
  }
  return CUDA_ERROR_NOT_FOUND;
}
