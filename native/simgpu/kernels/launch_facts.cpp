#include "launch_facts.hpp"

#include <algorithm>
#include <random>
#include <set>

namespace deepum::simgpu {
namespace {

// In Itanium mangling; the first that occurs in the name decides. Half and BFloat16 come first:
// kernels name the computing type beside.
std::uint64_t guess_element_bytes(std::string_view name) {
  if (name.find("BFloat16") != std::string_view::npos ||
      name.find("4Half") != std::string_view::npos)
    return 2;
  if (name.find("Float8") != std::string_view::npos) return 1;
  // Template argument lists: I <type> ... E; types of one letter.
  for (const auto& [pattern, bytes] : {std::pair<std::string_view, std::uint64_t>{"IfE", 4},
                                       {"IdE", 8},
                                       {"IlE", 8},
                                       {"IbE", 1},
                                       {"IhE", 1},
                                       {"Iff", 4},
                                       {"Idd", 8},
                                       {"Ill", 8},
                                       {"Ibb", 1},
                                       {"ENKUlfE", 4},
                                       {"ENKUldE", 8},
                                       {"ENKUllE", 8},
                                       {"ENKUlbE", 1}}) {
    if (name.find(pattern) != std::string_view::npos) return bytes;
  }
  return 4;
}

constexpr std::size_t kMostRuns = 4096;  // accesses of one launch that sampling may make

}  // namespace

Facts::Facts(const LaunchView& launch, const FindAllocation& find)
    : launch_(launch), element_bytes_(guess_element_bytes(launch.kernel)) {
  for (std::uint32_t offset = 0; offset + 8 <= launch.layout.bytes; offset += 8) {
    const auto address = at<std::uint64_t>(offset);
    if (address < 4096) continue;
    if (const auto range = find(address))
      pointers_.push_back({offset, address, range->address + range->bytes - address});
  }
}

std::vector<Pointer> Facts::pointers_in(std::size_t parameter) const {
  std::vector<Pointer> found;
  if (parameter >= parameters()) return found;
  const Parameter& p = launch_.layout.parameters[parameter];
  for (const Pointer& pointer : pointers_) {
    if (pointer.offset >= p.offset && pointer.offset < p.offset + p.size) found.push_back(pointer);
  }
  return found;
}

const Pointer* Facts::pointer(std::size_t parameter) const {
  if (parameter >= parameters()) return nullptr;
  const Parameter& p = launch_.layout.parameters[parameter];
  for (const Pointer& pointer : pointers_) {
    if (pointer.offset >= p.offset && pointer.offset < p.offset + p.size) return &pointer;
  }
  return nullptr;
}

const Pointer* Facts::pointer_at(std::uint32_t offset) const {
  for (const Pointer& pointer : pointers_) {
    if (pointer.offset == offset) return &pointer;
  }
  return nullptr;
}

void touch_sampled_rows(const Facts& facts, Touch& touch, const Pointer* table,
                        std::uint64_t table_bytes, std::uint64_t row_bytes, std::uint64_t indices,
                        bool read, bool write) {
  if (table == nullptr || row_bytes == 0 || indices == 0) return;
  const std::uint64_t room = std::min(table_bytes, table->room);
  const std::uint64_t rows = room / row_bytes;
  if (rows == 0) return;
  if (indices >= rows) {  // nearly all of it, in every page
    touch.add(table, 0, rows * row_bytes, read, write);
    return;
  }
  std::mt19937_64 generator(facts.launch().ordinal * 0x9e3779b97f4a7c15ull + 1);
  std::set<std::uint64_t> picked;
  const std::uint64_t samples = std::min<std::uint64_t>(indices, kMostRuns);
  for (std::uint64_t i = 0; i < samples; ++i) picked.insert(generator() % rows);
  // Where there are more indices than samples, each sample stands for a run of rows: the same bytes
  // in the same number of blocks.
  const std::uint64_t run = (indices + samples - 1) / samples;
  for (const std::uint64_t row : picked)
    touch.add(table, row * row_bytes, std::min(run, rows - row) * row_bytes, read, write);
}

}  // namespace deepum::simgpu
