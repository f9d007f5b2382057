// Which tensors are tried on the host (remote_trial.hpp): those of one size, which are alike, if
// each is used in one burst an iteration and all of them have no more than does not fit. A
// key-value cache that is filled to a tenth is moved whole otherwise, time and again; one that is
// full is brought as fast as it is read over the link, and gains nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "extras/copy_back.hpp"
#include "extras/host_residents.hpp"
#include "extras/remote_trial.hpp"
#include "memory/address_space.hpp"
#include "placement/departures.hpp"
#include "placement/device_memory.hpp"

namespace deepum::core {

class HostGroups {
 public:
  HostGroups(const deepum_core_settings& settings, const Clock& now,
             deepum_core_statistics& statistics, AddressSpace& memory, Devices& devices,
             Departures& departures, CopyBack& copy_back, HostResidents& residents)
      : settings_(settings),
        parameters_(settings.parameters.host),
        now_(now),
        statistics_(statistics),
        memory_(memory),
        devices_(devices),
        departures_(departures),
        copy_back_(copy_back),
        residents_(residents),
        trial_(settings.parameters.trial) {}

  // The next launch uses these blocks of a tensor.
  void note_use(const BlockSpan& span, Regularity& regularity);
  // The launch at hand: a trial begins, goes on, or ends.
  void launched();
  void completed(EventSequence sequence, std::uint64_t at);  // see PaceMeter
  bool under_way() const { return trial_.under_way(); }
  void events_lost() { trial_.abandon(); }

 private:
  struct Group {
    std::uint32_t device = 0;
    std::uint64_t bytes = 0;   // of a tensor
    std::uint64_t blocks = 0;  // of all of them; 0: no group
  };
  template <typename Visit>
  void for_each_tensor(std::uint32_t device, Visit visit);
  Group smallest_group(std::uint32_t device);
  bool find_group();
  void place_group(bool on_host);
  bool move_block(UmBlock& block, bool on_host);

  const deepum_core_settings& settings_;
  const deepum_host_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  AddressSpace& memory_;
  Devices& devices_;
  Departures& departures_;
  CopyBack& copy_back_;
  HostResidents& residents_;
  RemoteTrial trial_;  // of the latest group
  Group group_;
  std::vector<Group> tried_;
  LaunchIndex last_search_ =
      0;                // launch of the last search for a group; 0: search at the next chance
  bool timed_ = false;  // the GPU's times are reported
};

}  // namespace deepum::core
