#include "figures.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <variant>

#include "machine_of.hpp"

namespace deepum::um_model {
namespace {

struct Figure {
  std::string_view name;
  std::variant<double deepum_machine::*, std::int32_t deepum_machine::*,
               std::uint64_t deepum_machine::*>
      member;
};

#define DEEPUM_FIGURE(name) \
  Figure { #name, &deepum_machine::name }
constexpr Figure kFigures[] = {
    DEEPUM_FIGURE(memory_bytes),
    DEEPUM_FIGURE(presented_major),
    DEEPUM_FIGURE(presented_minor),
    DEEPUM_FIGURE(multiprocessors),
    DEEPUM_FIGURE(clock_khz),
    DEEPUM_FIGURE(fp32_gflops),
    DEEPUM_FIGURE(tensor_gflops),
    DEEPUM_FIGURE(memory_gbps),
    DEEPUM_FIGURE(fp32_sustained),
    DEEPUM_FIGURE(tensor_sustained),
    DEEPUM_FIGURE(memory_sustained),
    DEEPUM_FIGURE(h2d_gbps),
    DEEPUM_FIGURE(d2h_gbps),
    DEEPUM_FIGURE(copy_latency_ns),
    DEEPUM_FIGURE(host_gbps),
    DEEPUM_FIGURE(fault_batch_ns),
    DEEPUM_FIGURE(fault_ns_per_byte),
    DEEPUM_FIGURE(fault_ns_per_byte_no_prefetcher),
    DEEPUM_FIGURE(fault_batch_no_prefetcher_ns),
    DEEPUM_FIGURE(faults_per_batch),
    DEEPUM_FIGURE(eviction_ns_per_block),
    DEEPUM_FIGURE(min_kernel_ns),
    DEEPUM_FIGURE(launch_ns),
    DEEPUM_FIGURE(launch_queue),
    DEEPUM_FIGURE(migration_call_ns),
    DEEPUM_FIGURE(host_function_ns),
    DEEPUM_FIGURE(value_wait_ns),
    DEEPUM_FIGURE(block_ns),
    DEEPUM_FIGURE(both_ways),
    DEEPUM_FIGURE(discards),
    DEEPUM_FIGURE(queued_prefetch_faults),
    DEEPUM_FIGURE(blocking_calls),
    DEEPUM_FIGURE(decision_latency_ns),
    DEEPUM_FIGURE(host_memory_bytes),
    DEEPUM_FIGURE(disk_read_gbps),
    DEEPUM_FIGURE(disk_write_gbps),
    DEEPUM_FIGURE(disk_read_latency_ns),
    DEEPUM_FIGURE(disk_write_latency_ns),
    DEEPUM_FIGURE(disk_buffer_bytes),
    DEEPUM_FIGURE(host_keeps),
};
#undef DEEPUM_FIGURE

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// One "name=value".
bool change(deepum_machine& machine, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return false;
  }
  const auto* const known =
      std::find_if(std::begin(kFigures), std::end(kFigures),
                   [&](const Figure& figure) { return figure.name == text.substr(0, equals); });
  return known != std::end(kFigures) &&
         std::visit([&](auto member) { return read(text.substr(equals + 1), machine.*member); },
                    known->member);
}

}  // namespace

std::optional<Machine> with_figures(const Machine& preset, std::string_view figures) {
  deepum_machine machine;
  if (deepum_machine_find(std::string(preset.name).c_str(), &machine) != 0) {
    return std::nullopt;
  }
  while (!figures.empty()) {
    const std::size_t comma = std::min(figures.find(','), figures.size());
    if (!change(machine, figures.substr(0, comma))) {
      return std::nullopt;
    }
    figures.remove_prefix(std::min(comma + 1, figures.size()));
  }
  std::optional<Machine> made = machine_of(machine);
  if (made) {
    made->name = preset.name;
    made->description = preset.description;
    made->gpu_name = preset.gpu_name;
  }
  return made;
}

}  // namespace deepum::um_model
