// Some programs close every descriptor they find, and their next files get the lowest numbers that
// are free. What we write to a descriptor of ours must not go there.
#pragma once

namespace deepum::runtime {

// The descriptor under a number far above those that programs come to use, or as it was where the
// process may have none so high.
int out_of_the_way(int fd) noexcept;

}  // namespace deepum::runtime
