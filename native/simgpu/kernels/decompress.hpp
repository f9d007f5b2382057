// The two compressions of fatbin entries.
#pragma once

#include "bytes.hpp"

namespace deepum::simgpu {

// size: of the uncompressed bytes, exactly. Throw Malformed.
std::vector<std::uint8_t> decompress_zstd(Bytes frame, std::uint64_t size);
std::vector<std::uint8_t> decompress_lz4_block(Bytes block, std::uint64_t size);

}  // namespace deepum::simgpu
