#include "blocks.hpp"

#include "state.hpp"

namespace deepum::simgpu {

void Blocks::handed_out(um_model::Range range, std::uint64_t discards) {
  blocks_.insert_or_assign(range.address, Block{range.bytes, discards, false});
}

void Blocks::forget(um_model::Range range) {
  blocks_.erase(blocks_.lower_bound(range.address),
                blocks_.lower_bound(range.address + range.bytes));
}

const Blocks::Entry* Blocks::find(std::uint64_t address) const {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return nullptr;
  --found;
  return address - found->first < found->second.bytes ? &*found : nullptr;
}

std::uint64_t Blocks::held_since(um_model::Range range) const {
  const Entry* const entry = find(range.address);
  if (entry == nullptr || range.bytes > entry->second.bytes - (range.address - entry->first))
    return um_model::kNotKnown;
  return entry->second.held_since;
}

void Blocks::use(std::uint64_t address, std::vector<um_model::Range>& unused) {
  const Entry* const entry = find(address);
  if (entry == nullptr || entry->second.used) return;
  unused.push_back({entry->first, entry->second.bytes});
  blocks_.find(entry->first)->second.used = true;
}

}  // namespace deepum::simgpu

// bytes < 0: taken back.
extern "C" __attribute__((visibility("default"))) void deepum_sim_note_block(std::uint64_t address,
                                                                             std::int64_t bytes);
void deepum_sim_note_block(std::uint64_t address, std::int64_t bytes) {
  using namespace deepum::simgpu;
  State* const now = state();
  if (now == nullptr || bytes == 0) return;
  const std::lock_guard guard(lock());
  if (bytes > 0) {
    now->blocks.handed_out({address, static_cast<std::uint64_t>(bytes)}, now->engine.discards());
  } else {
    now->blocks.taken_back(address);
  }
}
