// What the shim says to a person: whole lines to standard error, nothing else ever.
#pragma once

namespace deepum::runtime {

enum class Level { kWarning = 1, kInformation = 2, kEverything = 3 };

// "deepum: " and the text and a newline, in one write, if DEEPUM_LOG is at least `level`. At most
// 500 characters. Preserves errno.
[[gnu::format(printf, 2, 3)]] void say(Level level, const char* format, ...) noexcept;

}  // namespace deepum::runtime
