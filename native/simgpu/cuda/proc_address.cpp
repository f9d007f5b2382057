// cuGetProcAddress: the base name, the version the caller was written for and its default-stream
// flavour select the symbol.
#include <algorithm>
#include <cstring>

#include "cuda_api.hpp"
#include "proc_table.hpp"

using namespace deepum::simgpu;

namespace {

struct Answer {
  void* pointer = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

Answer look_up(const char* name, int version, bool per_thread) {
  const ProcAddress* const end = kProcAddresses + kProcAddressCount;
  const ProcAddress* row = std::lower_bound(
      kProcAddresses, end, name,
      [](const ProcAddress& entry, const char* key) { return std::strcmp(entry.base, key) < 0; });
  Answer answer;
  for (; row != end && std::strcmp(row->base, name) == 0; ++row) {
    if (row->version > version) {
      if (answer.pointer == nullptr) answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      break;
    }
    // A function without a per-thread variant is the same for both flavours.
    if (!row->per_thread || per_thread) answer = {row->pointer, CU_GET_PROC_ADDRESS_SUCCESS};
  }
  return answer;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Answer answer =
      look_up(symbol, cudaVersion, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  *pfn = answer.pointer;
  if (symbolStatus != nullptr) *symbolStatus = answer.status;
  return answer.pointer != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}
