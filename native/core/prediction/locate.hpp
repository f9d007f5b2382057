// The accesses of a predicted launch, where they are now.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/address_space.hpp"
#include "prediction/block_table.hpp"

namespace deepum::core {

// Of the runs of a block table. Left out: those whose memory was freed, or handed out within the
// `distance` launches before the latest, since the name stands for another tensor now.
void locate(const AddressSpace& memory, const BlockTable& blocks, std::uint64_t distance,
            std::vector<Access>& found);

}  // namespace deepum::core
