#include "torch_calls.hpp"

#include <cstdint>
#include <new>
#include <string>

#include "loaded.hpp"

namespace deepum::arena_allocator {
namespace {

// c10::Device by value.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};
constexpr std::int8_t kCudaDevice = 1;  // c10::DeviceType::CUDA

// c10::SourceLocation by value.
struct SourceLocation {
  const char* function;
  const char* file;
  std::uint32_t line;
};

using ReportMemory = void(void*, std::int64_t, std::size_t, std::size_t, TorchDevice);
using CheckFail = void(const char*, const char*, std::uint32_t, const char*);
using MakeError = void(void*, SourceLocation, std::string);
using AllocateException = void*(std::size_t);
using Destroy = void(void*);
using Throw = void(void*, void*, Destroy*);

constexpr const char* kFunction = "deepum.arena";
// More than sizeof(c10::Error), of which PyTorch 2.12 has about 150.
constexpr std::size_t kErrorBytes = 1024;

template <typename Function>
Function* torch_function(const char* library, const char* name) noexcept {
  return reinterpret_cast<Function*>(loaded(library, name));
}

// What `throw c10::OutOfMemoryError(location, text)` is compiled to: the class adds nothing to
// c10::Error but its type. Whatever is thrown is made by the process's C++ runtime.
struct OutOfMemory {
  void* type = loaded("libc10_cuda.so", "_ZTIN3c1016OutOfMemoryErrorE");
  void* table = loaded("libc10_cuda.so", "_ZTVN3c1016OutOfMemoryErrorE");
  MakeError* make = torch_function<MakeError>(
      "libc10.so",
      "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  AllocateException* allocate =
      torch_function<AllocateException>("libc10.so", "__cxa_allocate_exception");
  Throw* raise = torch_function<Throw>("libc10.so", "__cxa_throw");

  bool is_there() const { return type && table && make && allocate && raise; }

  // nullptr: memory is short.
  void* made(const char* text) const noexcept try {
    void* const error = allocate(kErrorBytes);
    make(error, {kFunction, __FILE__, __LINE__}, text);
    *static_cast<void***>(error) = static_cast<void**>(table) + 2;  // behind offset and type
    return error;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
};

// Functions of their own, so that those that throw have nothing to clean up.
const OutOfMemory& out_of_memory() noexcept {
  static const OutOfMemory only;
  return only;
}

CheckFail* check_fail() noexcept {
  static auto* const only =
      torch_function<CheckFail>("libc10.so", "_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
  return only;
}

}  // namespace

void report_block(void* block, std::int64_t bytes, std::size_t live, std::size_t held,
                  int device) noexcept {
  constexpr const char* kName = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
  static auto* const report = reinterpret_cast<ReportMemory*>(preloaded("libc10.so", kName));
  if (report != nullptr) {
    report(block, bytes, live, held, {kCudaDevice, static_cast<std::int8_t>(device)});
  }
}

void throw_out_of_memory(const char* text) {
  const OutOfMemory& calls = out_of_memory();
  if (calls.is_there()) {
    if (void* const error = calls.made(text)) {
      calls.raise(error, calls.type, (*static_cast<Destroy***>(error))[0]);
    }
  }
  throw_error(text);
}

void throw_error(const char* text) {
  if (CheckFail* const fail = check_fail()) {
    fail(kFunction, __FILE__, __LINE__, text);
  }
}

}  // namespace deepum::arena_allocator
