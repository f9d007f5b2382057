#include "operation_ranges.hpp"

// No profiler is linked into this library.
#define NVTX_SUPPORT_STATIC_INJECTION_LIBRARY 0
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

#include "message.hpp"

namespace deepum::runtime {
namespace {

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";

enum class Direction : std::uint32_t { kToGpu = 1, kToHost = 2, kNoCopy = 3 };

struct Category {
  Direction direction;
  const char* name;
  std::uint32_t argb;
};

constexpr Category kCategories[] = {{Direction::kToGpu, "to the GPU", 0xff4c78a8},
                                    {Direction::kToHost, "to the host", 0xfff58518},
                                    {Direction::kNoCopy, "no copy", 0xff9d9d9d}};

struct Kind {
  const char* name;
  Direction direction;
};

constexpr Kind kind_of(const deepum_command& command) noexcept {
  switch (command.kind) {
    case DEEPUM_COMMAND_PREFETCH:
      return {"prefetch", Direction::kToGpu};
    case DEEPUM_COMMAND_EVICT:
      return {"evict", Direction::kToHost};
    case DEEPUM_COMMAND_COPY_OUT:
      return {"copy out", Direction::kToHost};
    case DEEPUM_COMMAND_DISCARD:
      return {"discard", Direction::kNoCopy};
    case DEEPUM_COMMAND_DROP:
      return {"drop", Direction::kNoCopy};
    case DEEPUM_COMMAND_COLLAPSE:
      return {"collapse", Direction::kNoCopy};
    case DEEPUM_COMMAND_POPULATE:
      return {"populate", Direction::kNoCopy};
    default:
      return {"advise", Direction::kNoCopy};
  }
}

}  // namespace

OperationRanges::OperationRanges(nvtxDomainRegistration_st* domain) noexcept : domain_(domain) {
  for (const Category& category : kCategories) {
    nvtxDomainNameCategoryA(domain_, static_cast<std::uint32_t>(category.direction), category.name);
  }
}

std::optional<OperationRanges> OperationRanges::open() noexcept {
  const char* const path = std::getenv(kVariable);
  if (!path || *path == '\0') {
    return std::nullopt;
  }
  if (const nvtxDomainHandle_t domain = nvtxDomainCreateA("deepum")) {
    return OperationRanges(domain);
  }
  say(Level::kWarning,
      "warning: %s=%s: cannot be loaded, or takes no ranges; the mover's operations are not shown",
      kVariable, path);
  return std::nullopt;
}

const OperationRanges* OperationRanges::instance() noexcept {
  static const std::optional<OperationRanges> ranges = open();
  return ranges ? &*ranges : nullptr;
}

void OperationRanges::begin(const deepum_command& first, std::size_t commands,
                            std::span<const mover::Range> ranges) const noexcept {
  const Kind kind = kind_of(first);
  const Category& category = kCategories[static_cast<std::uint32_t>(kind.direction) - 1];
  char message[96];
  const int length = std::snprintf(message, sizeof message, "%s, decided at event %llu", kind.name,
                                   static_cast<unsigned long long>(first.cause));
  if (commands > 1) {
    std::snprintf(message + length, sizeof message - static_cast<std::size_t>(length),
                  ", %zu commands", commands);
  }
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = static_cast<std::uint32_t>(category.direction);
  event.colorType = NVTX_COLOR_ARGB;
  event.color = category.argb;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  for (const mover::Range& range : ranges) {
    event.payload.ullValue += range.bytes;
  }
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  nvtxDomainRangePushEx(domain_, &event);
}

void OperationRanges::end() const noexcept { nvtxDomainRangePop(domain_); }

}  // namespace deepum::runtime
