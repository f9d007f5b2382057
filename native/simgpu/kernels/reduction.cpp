// reduce_kernel of Reduce.cuh: one struct, ReduceOp.
#include "reduction.hpp"

#include "families.hpp"
#include "mangled.hpp"
#include "offset_calculator.hpp"

namespace deepum::simgpu {
namespace {

// ReduceConfig, 64 bytes of ints, lies behind the operation and its identity, whose sizes vary; it
// repeats the block's shape.
constexpr std::uint32_t kConfigBytes = 64;

std::optional<std::uint32_t> find_config(const Facts& facts) {
  const LaunchView& launch = facts.launch();
  for (std::uint32_t at = 0; at + kConfigBytes <= launch.layout.bytes && at < 128; at += 4) {
    const auto field = [&](std::uint32_t index) { return facts.at<std::uint32_t>(at + 4 * index); };
    if (field(0) >= 1 && field(0) <= 16 && field(11) == launch.block[0] &&
        field(12) == launch.block[1] && field(13) == launch.block[0] * launch.block[1] &&
        field(5) == launch.grid[1])
      return at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reduction> reduction_of(const Facts& facts) {
  if (!facts.named("13reduce_kernel")) return std::nullopt;
  const auto config = find_config(facts);
  if (!config) return std::nullopt;
  Reduction found;
  found.element = facts.at<std::uint32_t>(*config);
  const std::vector<std::uint64_t> types = template_type_bytes(facts.kernel(), "ReduceOp");
  found.source_element = types.empty() ? found.element : types[0];
  found.inputs = facts.at<std::uint32_t>(*config + 4);
  found.outputs = facts.at<std::uint32_t>(*config + 8);
  found.parts = facts.at<std::uint32_t>(*config + 20);
  const OffsetCalculator reduced(facts, *config + kConfigBytes, 1);  // strides in bytes
  const std::uint32_t kept_at = *config + kConfigBytes + OffsetCalculator::bytes(1);
  const OffsetCalculator kept(facts, kept_at, 2);  // operands: output, input
  found.source = (kept_at + OffsetCalculator::bytes(2) + 7) / 8 * 8;
  found.exact = facts.pointer_at(found.source) != nullptr && reduced.valid() && kept.valid() &&
                reduced.elements() == found.inputs;
  if (!found.exact) return found;
  found.input = reduced.dimensions(0);
  for (const Dimension& dimension : kept.dimensions(1)) found.input.push_back(dimension);
  found.output = kept.dimensions(0);
  return found;
}

bool describe_reduction(const Facts& facts, Touch& touch) {
  const std::optional<Reduction> r = reduction_of(facts);
  if (!r) return false;
  if (!r->exact) {  // 64-bit indices, or a form not known here
    const std::vector<Pointer>& pointers = facts.pointers();
    for (std::size_t i = 0; i < pointers.size(); ++i)
      touch.add(&pointers[i], 0, (i == 0 ? r->inputs : 1) * r->outputs * r->element, true, i != 0);
    return true;
  }
  const std::uint32_t source = r->source;
  touch.add_strided(facts.pointer_at(source), r->input, r->source_element, true, false);
  touch.both(facts.pointer_at(source + 24), r->outputs * 8);  // accumulation buffer
  if (r->parts > 1) {
    // Partial results of the blocks.
    touch.both(facts.pointer_at(source + 32), r->outputs * r->parts * 8);
    touch.both(facts.pointer_at(source + 40), facts.launch().grid[0] * sizeof(int));
  }
  for (const std::uint32_t at : {source + 8, source + 16}) {
    // noutputs, behind base_idx and two flags.
    if (at == source + 16 && facts.at<std::uint32_t>(source + 64) < 2) continue;
    touch.add_strided(facts.pointer_at(at), r->output, r->element, false, true);
  }
  return true;
}

}  // namespace deepum::simgpu
