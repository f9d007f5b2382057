// Whether content that a kernel reads is lost for sure. Reading memory that nothing was written to
// is no error of a program, and not all that is written is known: so a read of discarded memory is
// an error only where three things are certain.
//   - The access is exact: the kernel reads there (Access::estimated).
//   - The memory was the program's when the discard was asked for, and stayed its own
//   (Access::held_since): nobody handed it out again.
//   - Nothing wrote there since. A kernel of unknown effect (Kernel::unknown) may write anything,
//   also what pointers in device memory
//     lead to; one with estimated writes may write more of the allocations that it writes to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "block_table.hpp"

namespace deepum::um_model {

class Losses {
 public:
  // A kernel begins; the answer is what its estimated writes are noted by (BlockTable::split).
  std::uint64_t kernel_begins(bool unknown) {
    if (unknown) {
      ++unknown_running_;
    }
    return ++now_;
  }
  void kernel_ended(bool unknown) {
    if (unknown) {
      --unknown_running_;
      unknown_ended_ = ++now_;
    }
  }

  // discard: the number that it got when it was asked for. Of several in one block the earliest
  // counts: less is certain then, not more.
  void lose(Block& block, Regions regions, std::uint64_t discard) {
    if ((block.lost & ~regions) == 0) {
      block.lost_by = discard;
      block.lost_at = ++now_;
    } else {
      block.lost_by = std::min(block.lost_by, discard);
    }
    block.lost |= regions;
  }

  bool sure(const Block& block, const Piece& piece, const BlockTable::Mapping* mapping) const {
    return !piece.estimated && block.lost_by > piece.held_since && unknown_running_ == 0 &&
           block.lost_at > unknown_ended_ &&
           (mapping == nullptr || block.lost_at > mapping->guessed_at);
  }

 private:
  std::uint64_t now_ = 0;  // counts what matters here, in the order of virtual time
  std::uint64_t unknown_ended_ = 0;
  std::uint64_t unknown_running_ = 0;
};

}  // namespace deepum::um_model
