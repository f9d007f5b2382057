// reduce_kernel of Reduce.cuh: one struct, ReduceOp.
#include "families.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

// ReduceConfig, 64 bytes of ints, lies behind the operation and its identity, whose sizes vary; it repeats the block's shape.
constexpr std::uint32_t kConfigBytes = 64;

std::optional<std::uint32_t> find_config(const Facts& facts) {
  const LaunchView& launch = facts.launch();
  for (std::uint32_t at = 0; at + kConfigBytes <= launch.layout.bytes && at < 128; at += 4) {
    const auto field = [&](std::uint32_t index) { return facts.at<std::uint32_t>(at + 4 * index); };
    if (field(0) >= 1 && field(0) <= 16 && field(11) == launch.block[0] && field(12) == launch.block[1] &&
        field(13) == launch.block[0] * launch.block[1] && field(5) == launch.grid[1])
      return at;
  }
  return std::nullopt;
}

}  // namespace

bool describe_reduction(const Facts& facts, Touch& touch) {
  if (!facts.named("13reduce_kernel")) return false;
  const auto config = find_config(facts);
  if (!config) return false;
  const std::uint64_t element = facts.at<std::uint32_t>(*config), inputs = facts.at<std::uint32_t>(*config + 4),
                      outputs = facts.at<std::uint32_t>(*config + 8), parts = facts.at<std::uint32_t>(*config + 20);
  const OffsetCalculator reduced(facts, *config + kConfigBytes, 1);  // strides in bytes
  const std::uint32_t kept_at = *config + kConfigBytes + OffsetCalculator::bytes(1);
  const OffsetCalculator kept(facts, kept_at, 2);  // operands: output, input
  const std::uint32_t source = (kept_at + OffsetCalculator::bytes(2) + 7) / 8 * 8;
  const bool exact = facts.pointer_at(source) != nullptr && reduced.valid() && kept.valid() && reduced.elements() == inputs;
  if (!exact) {  // 64-bit indices, or a form not known here
    const std::vector<Pointer>& pointers = facts.pointers();
    for (std::size_t i = 0; i < pointers.size(); ++i) touch.add(&pointers[i], 0, (i == 0 ? inputs : 1) * outputs * element, true, i != 0);
    return true;
  }
  std::vector<Dimension> input = reduced.dimensions(0);
  for (const Dimension& dimension : kept.dimensions(1)) input.push_back(dimension);
  touch.add_strided(facts.pointer_at(source), std::move(input), element, true, false);
  touch.both(facts.pointer_at(source + 24), outputs * 8);  // accumulation buffer
  if (parts > 1) {
    touch.both(facts.pointer_at(source + 32), outputs * parts * 8);  // partial results of the blocks
    touch.both(facts.pointer_at(source + 40), facts.launch().grid[0] * sizeof(int));
  }
  for (const std::uint32_t at : {source + 8, source + 16}) {
    if (at == source + 16 && facts.at<std::uint32_t>(source + 64) < 2) continue;  // noutputs, behind base_idx and two flags
    touch.add_strided(facts.pointer_at(at), kept.dimensions(0), element, false, true);
  }
  return true;
}

}  // namespace deepum::simgpu
