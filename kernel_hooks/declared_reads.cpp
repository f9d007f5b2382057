#include "declared_reads.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "session.hpp"

namespace deepum::hooks {
namespace {

void declare_reads(const deepum_address_range* ranges, std::uint32_t count) noexcept {
  declared_reads = {ranges, ranges != nullptr ? count : 0};
}

int reads_wanted() noexcept { return runtime::reads_wanted() ? 1 : 0; }

static_assert(std::is_convertible_v<decltype(&declare_reads), deepum_declare_reads>);
static_assert(std::is_convertible_v<decltype(&reads_wanted), deepum_reads_wanted>);

}  // namespace

bool DeclaredReads::contain(std::uint64_t address) const noexcept {
  const deepum_address_range* const after =
      std::upper_bound(ranges, ranges + count, address,
                       [](std::uint64_t value, const auto& range) { return value < range.begin; });
  return after != ranges && address < after[-1].end;
}

void* declaring_function(const char* name) noexcept {
  if (name == nullptr || std::strncmp(name, "deepum", 6) != 0) {
    return nullptr;
  }
  if (std::strcmp(name, "deepumDeclareReads") == 0) {
    return reinterpret_cast<void*>(&declare_reads);
  }
  return std::strcmp(name, "deepumReadsWanted") == 0 ? reinterpret_cast<void*>(&reads_wanted)
                                                     : nullptr;
}

void abandon_declared_in_child() noexcept { declared_reads = {}; }

}  // namespace deepum::hooks
