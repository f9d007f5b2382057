// What PyTorch is told, by its own functions as the process has loaded them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepum::arena_allocator {

// A block that is handed out (bytes > 0) or taken back (< 0), with the sums behind it: PyTorch's
// profiler, and who stands in front of it, as for the caching allocator's (docs/hooks.md).
void report_block(void* block, std::int64_t bytes, std::size_t live, std::size_t held,
                  int device) noexcept;

// These do not return where PyTorch is loaded. They are called where no object is left to destroy:
// what is thrown is PyTorch's, by its own runtime, and passes the caller's frame alone.
void throw_out_of_memory(const char* text);
void throw_error(const char* text);

}  // namespace deepum::arena_allocator
