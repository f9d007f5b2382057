// Which of a stream's markers is the first to lie behind a launch, for the runtime and the
// simulation. Logic only.
#pragma once

#include <cstdint>

namespace deepum::mover {

// Markers are numbered from `oldest` to `newest`, by rising sequence; `kept(i)` is one of them,
// `there(i)` whether it is kept still. The number of the oldest marker at or behind the sequence,
// else of the newest; or of the one before it, where no launch up to the sequence lies behind that:
// what is behind it may take long.
template <typename Kept, typename There>
std::uint64_t covering_marker(std::uint64_t oldest, std::uint64_t newest, std::uint64_t sequence,
                              const Kept& kept, const There& there) {
  std::uint64_t at = oldest;
  for (std::uint64_t end = newest; at < end;) {
    const std::uint64_t middle = at + (end - at) / 2;
    if (kept(middle).sequence < sequence) {
      at = middle + 1;
    } else {
      end = middle;
    }
  }
  const bool before =
      there(at) && there(at - 1) && kept(at).sequence >= sequence && kept(at).first > sequence;
  return before ? at - 1 : at;
}

}  // namespace deepum::mover
