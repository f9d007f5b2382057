// The shim's own words: whole lines on standard error, by level (1 warnings, 2 info, 3 debug), never more.
#pragma once

namespace deepum::runtime {

[[gnu::format(printf, 2, 3)]] void say(int level, const char* format, ...) noexcept;

}  // namespace deepum::runtime
