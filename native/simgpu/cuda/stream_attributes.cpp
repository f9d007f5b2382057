// Stream attributes: kept and answered, without effect on the model.
#include <cstring>
#include <map>

#include "streams.hpp"

using namespace deepum::simgpu;

namespace {

// By the stream's unique number and the attribute; guarded by the driver's lock.
std::map<std::pair<std::uint64_t, int>, CUstreamAttrValue>& attributes() {
  static auto* const made = new std::map<std::pair<std::uint64_t, int>, CUstreamAttrValue>;
  return *made;
}

bool known(CUstreamAttrID attr) {
  return attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
         attr == CU_LAUNCH_ATTRIBUTE_PRIORITY || attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
         attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

}  // namespace

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value_out == nullptr || !known(attr)) return CUDA_ERROR_INVALID_VALUE;
  const auto found = attributes().find({stream->unique, attr});
  std::memset(value_out, 0, sizeof *value_out);
  if (found != attributes().end()) {
    *value_out = found->second;
  } else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    value_out->syncPolicy = CU_SYNC_POLICY_AUTO;
  } else if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value_out->priority = stream->priority;
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                              const CUstreamAttrValue* value) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream stream = resolve_stream(call, hStream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr || !known(attr)) return CUDA_ERROR_INVALID_VALUE;
  attributes()[{stream->unique, attr}] = *value;
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) {
  Call call(Need::context, Role::neutral);
  if (!call) return call.error();
  const CUstream to = resolve_stream(call, dstStream), from = resolve_stream(call, srcStream);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto& all = attributes();
  for (auto entry = all.lower_bound({from->unique, 0});
       entry != all.end() && entry->first.first == from->unique; ++entry) {
    all[{to->unique, entry->first.second}] = entry->second;
  }
  return CUDA_SUCCESS;
}
