// Blocks in a row of which the same becomes, which one command names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/um_block.hpp"

namespace deepum::core {

// `give(first, count)` for each run of blocks that `takes` is true of, which is asked of each once.
template <typename Takes, typename Give>
void for_each_run(std::span<UmBlock> blocks, const Takes& takes, const Give& give) {
  std::uint32_t run = 0;
  for (std::size_t i = 0; i <= blocks.size(); ++i) {  // one more, which ends the last run
    if (i < blocks.size() && takes(blocks[i])) {
      ++run;
    } else if (run > 0) {
      give(blocks[i - run], run);
      run = 0;
    }
  }
}

}  // namespace deepum::core
