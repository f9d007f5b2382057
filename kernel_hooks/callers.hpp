// Which library asks for memory: the nearest one on the thread's stack that does not only hand
// calls on.
#pragma once

#include "plain_rules.hpp"

namespace deepum::hooks {

// Those of the rules `wanted` that name it. None if the stack cannot be followed that far. Without
// any such library in the process the stack is not looked at. Some microseconds otherwise: for
// allocations, not for launches.
runtime::PlainRules::Set rules_naming_caller(runtime::PlainRules::Set wanted) noexcept;
void abandon_callers_in_child() noexcept;

}  // namespace deepum::hooks
