// What is better left on the host. An embedding table of which a kernel gathers or updates some
// thousand rows is read and written over the link in far less time than it takes to move it, and
// needs no room on the device: it prefers the host (PREFERRED_LOCATION) and is mapped for the
// device (ACCESSED_BY), so that nothing faults. What is on the device when it is advised stays
// there until its space is needed, and is as good as ever.
#pragma once

#include <cstdint>
#include <span>

#include "clock.hpp"
#include "command_stream.hpp"
#include "extras/copy_back.hpp"
#include "memory/address_space.hpp"
#include "placement/device_memory.hpp"

namespace deepum::core {

class HostResidents final : public ContentListener {
 public:
  HostResidents(const deepum_core_settings& settings, const Clock& now,
                deepum_core_statistics& statistics, CommandStream& commands, AddressSpace& memory,
                Devices& devices, CopyBack& copy_back)
      : settings_(settings),
        parameters_(settings.parameters.host),
        now_(now),
        statistics_(statistics),
        commands_(commands),
        memory_(memory),
        devices_(devices),
        copy_back_(copy_back) {}

  // The launch at hand uses these; `flags` are those of its event.
  void observe(std::span<const Access> accesses, std::uint8_t flags);
  // The program prefers these blocks on the host, or does not any longer.
  static void follow_program(std::span<UmBlock> blocks, bool on_host);
  // Advice on the block was not carried out.
  void advice_failed(UmBlock& block) { forget_advice(block); }

  void content_died(UmBlock&, bool) override {}
  void content_begins(UmBlock& block) override;
  void memory_gone(Allocation& allocation) override;

  // For tensors that are tried on the host as a group (host_groups.hpp).
  bool may_stay_as_group(const UmBlock& block) const;
  void set_of_group(UmBlock& block, bool on_host);
  void advise(const UmBlock& first, std::uint32_t count, bool on_host);
  void note_peak() {
    statistics_.peak_remote_bytes =
        std::max(statistics_.peak_remote_bytes, statistics_.remote_bytes);
  }

 private:
  bool may_advise() const;
  void observe(const BlockSpan& span, bool gathers);
  void map_tables(std::span<UmBlock> blocks);
  void unmap_tables(std::span<UmBlock> blocks);
  void set_mapped(UmBlock& block, bool mapped);
  bool may_map(const UmBlock& block) const;
  bool changes(UmBlock& block, bool sparse, bool may_advise);
  void apply(UmBlock& block, bool sparse, bool changed);
  void forget_advice(UmBlock& block);

  const deepum_core_settings& settings_;
  const deepum_host_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  CommandStream& commands_;
  AddressSpace& memory_;
  Devices& devices_;
  CopyBack& copy_back_;
  std::uint64_t sparse_blocks_ = 0;  // that have sparse uses, or are advised to the host
  std::uint64_t mapped_blocks_ = 0;  // ACCESSED_BY
};

}  // namespace deepum::core
