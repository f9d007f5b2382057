// Pieces of work for a stream: what the copy, memset and launch calls make, what stream capture
// keeps in graph nodes, and what is handed to the engine in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "modules.hpp"
#include "streams.hpp"

namespace deepum::simgpu {

struct KernelWork {
  CUfunction function = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::vector<std::uint8_t> parameters;  // packed as the function's layout says
};

// A box of bytes: `height * depth` rows of `width`.
struct CopyWork {
  std::uint64_t destination = 0, source = 0;
  std::uint64_t width = 0, height = 1, depth = 1;         // bytes, rows, slices
  std::uint64_t destination_pitch = 0, source_pitch = 0;  // bytes from row to row
  std::uint64_t destination_slice = 0, source_slice = 0;  // bytes from slice to slice
  // Not empty: the source's bytes as they were at the call.
  std::vector<std::uint8_t> staged;
  std::uint64_t bytes() const { return width * height * depth; }
  std::uint64_t destination_span() const { return span(destination_pitch, destination_slice); }
  std::uint64_t source_span() const { return span(source_pitch, source_slice); }

 private:
  std::uint64_t span(std::uint64_t pitch, std::uint64_t slice) const {
    return bytes() == 0 ? 0 : (depth - 1) * slice + (height - 1) * pitch + width;
  }
};

struct FillWork {
  std::uint64_t destination = 0;
  std::uint64_t width = 0, height = 1;  // elements, rows
  std::uint64_t pitch = 0;              // bytes from row to row
  std::uint32_t value = 0;
  std::uint32_t element = 1;  // bytes: 1, 2 or 4
  std::uint64_t span() const {
    return width == 0 || height == 0 ? 0 : (height - 1) * pitch + width * element;
  }
};

struct HostWork {
  std::function<void()> function;
  CUhostFn host_function = nullptr;  // as given, for cuGraphHostNodeGetParams
  void* data = nullptr;
};

struct ValueWork {
  enum Kind { write, wait_geq, wait_eq, wait_and, wait_nor } kind = write;
  std::uint64_t address = 0;
  std::uint64_t value = 0;
  bool wide = false;  // 64 bits
};

struct EmptyWork {};
struct RecordWork {
  CUevent event = nullptr;
};
struct WaitWork {
  CUevent event = nullptr;
};
struct ChildWork {
  CUgraph graph = nullptr;  // owned by the node
};
using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, ValueWork,
                          RecordWork, WaitWork, ChildWork>;

// Hands the work to the engine, at the host's clock. Checks were made when the work was made.
// of_graph: the call that launched the graph is paid for already.
void enqueue(State& state, um_model::Host host, um_model::Stream stream, int device,
             const Work& work, bool of_graph = false);

// A launch's work from what the caller gave: kernelParams (a pointer a parameter) or extra (a
// packed buffer, CU_LAUNCH_PARAM_*).
CUresult make_launch(State& state, CUfunction handle, const std::uint32_t (&grid)[3],
                     const std::uint32_t (&block)[3], std::uint32_t shared_bytes,
                     void* const* parameters, void* const* extra, KernelWork& work);

// Work of a call on a stream: into the graph if the stream is capturing, else to the engine.
CUresult submit(Call& call, CUstream stream, Work work);

// Moves and sets the data itself (data.cpp). Memory never written stays untouched. zero_data: of
// device, managed and pinned memory.
void zero_data(State& state, um_model::Range range);
void copy_data(State& state, const CopyWork& work);
void fill_data(State& state, const FillWork& work);

}  // namespace deepum::simgpu
