// Element types in Itanium-mangled kernel names. Sizes in bytes; 0: not a scalar type of PyTorch's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace deepum::simgpu {

// The leading scalar types of the template arguments of the first template whose name ends in
// `identifier` (any, if empty) and that has scalar types among its arguments. Literals are skipped:
// softmax<4, float, float> gives {4, 4}.
std::vector<std::uint64_t> template_type_bytes(std::string_view name,
                                               std::string_view identifier = {});

// The same of what follows the first `text`.
std::vector<std::uint64_t> type_bytes_after(std::string_view name, std::string_view text);

// Parameter types of the first lambda that takes scalars: {lambda(float, bool)#1} gives {4, 1}.
std::vector<std::uint64_t> lambda_type_bytes(std::string_view name);

}  // namespace deepum::simgpu
