// One launch as the kernel families look at it: its parameters, the device pointers among them, how
// many threads it has.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../runs.hpp"
#include "truth.hpp"

namespace deepum::simgpu {

struct Pointer {
  std::uint32_t offset;  // in the parameter buffer
  std::uint64_t address;
  std::uint64_t room;  // bytes from the address to the end of the allocation that holds it
};

class Facts {
 public:
  Facts(const LaunchView& launch, const FindAllocation& find);

  const LaunchView& launch() const { return launch_; }
  std::string_view kernel() const { return launch_.kernel; }
  bool named(std::string_view part) const {
    return launch_.kernel.find(part) != std::string_view::npos;
  }
  std::uint64_t blocks() const {
    return static_cast<std::uint64_t>(launch_.grid[0]) * launch_.grid[1] * launch_.grid[2];
  }
  std::uint64_t block_threads() const {
    return static_cast<std::uint64_t>(launch_.block[0]) * launch_.block[1] * launch_.block[2];
  }
  std::uint64_t threads() const { return blocks() * block_threads(); }

  // Every distinct 8-byte aligned slot of the buffer that holds an address of device memory, in
  // order.
  const std::vector<Pointer>& pointers() const { return pointers_; }
  std::size_t parameters() const { return launch_.layout.parameters.size(); }
  // Slots within one parameter, and the first of them (nullptr if none).
  std::vector<Pointer> pointers_in(std::size_t parameter) const;
  const Pointer* pointer(std::size_t parameter) const;
  const Pointer* pointer_at(std::uint32_t offset) const;

  // A value in a parameter; 0 outside it.
  template <typename T>
  T value(std::size_t parameter, std::uint32_t offset = 0) const {
    if (parameter >= parameters()) return T{};
    const Parameter& p = launch_.layout.parameters[parameter];
    return offset + sizeof(T) <= p.size ? at<T>(p.offset + offset) : T{};
  }
  template <typename T>
  T at(std::uint32_t offset) const {
    T result{};
    if (offset + sizeof(T) <= launch_.layout.bytes)
      std::memcpy(&result, launch_.parameters + offset, sizeof result);
    return result;
  }
  // An integer parameter of 4 or 8 bytes; 0 for any other.
  std::uint64_t integer(std::size_t parameter) const {
    return size(parameter) == 8 ? value<std::uint64_t>(parameter) : value<std::uint32_t>(parameter);
  }
  std::uint32_t size(std::size_t parameter) const {
    return parameter < parameters() ? launch_.layout.parameters[parameter].size : 0;
  }

  // Element size that the name's types suggest; 4 where they do not.
  std::uint64_t element_bytes() const { return element_bytes_; }

 private:
  const LaunchView& launch_;
  std::vector<Pointer> pointers_;
  std::uint64_t element_bytes_;
};

// Collects accesses, cut to what the allocations hold.
class Touch {
 public:
  explicit Touch(um_model::Kernel& kernel) : kernel_(kernel) {}
  void read(const Pointer* p, std::uint64_t bytes) { add(p, 0, bytes, true, false); }
  void write(const Pointer* p, std::uint64_t bytes) { add(p, 0, bytes, false, true); }
  // Read and written, in which order is not known.
  void both(const Pointer* p, std::uint64_t bytes) { add(p, 0, bytes, true, true, true); }
  void add(const Pointer* p, std::uint64_t offset, std::uint64_t bytes, bool read, bool write,
           bool written_first = false) {
    if (p == nullptr || bytes == 0 || offset >= p->room) return;
    kernel_.accesses.push_back(
        {{p->address + offset, std::min(bytes, p->room - offset)}, read, write, written_first});
  }
  // A strided operand: element is its size in bytes.
  void add_strided(const Pointer* p, std::vector<Dimension> dimensions, std::uint64_t element,
                   bool read, bool write) {
    for (const Run& run : runs(std::move(dimensions), element))
      add(p, run.offset, run.bytes, read, write);
  }
  // May be written besides what was told.
  void perhaps(const Pointer* p, std::uint64_t bytes) {
    if (p != nullptr) kernel_.perhaps_written.push_back({p->address, std::min(bytes, p->room)});
  }
  void flops(double count) { kernel_.flops += count; }
  void peak_fraction(double reached) { kernel_.peak_fraction = reached; }
  void use_matrix_units() { kernel_.matrix_units = true; }

 private:
  um_model::Kernel& kernel_;
};

// Rows of a table that a gather or scatter picks: `indices` of `row_bytes` each, uniformly, by a
// generator seeded with the launch.
void touch_sampled_rows(const Facts& facts, Touch& touch, const Pointer* table,
                        std::uint64_t table_bytes, std::uint64_t row_bytes, std::uint64_t indices,
                        bool read, bool write);

}  // namespace deepum::simgpu
