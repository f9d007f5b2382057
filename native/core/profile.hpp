// Learned tables as bytes. Executions are known by their hashes and blocks by (name, block), both
// equal in a second run, so that it predicts from its first step on, at other addresses and in
// other slots.
//
// The latest launches come with them, so that it goes on where the last run ended as if it had
// never stopped; and how much memory it came to need, so that the same program is under pressure
// before it has asked for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core.h"
#include "memory/names.hpp"
#include "prediction/execution_table.hpp"
#include "prediction/history.hpp"

namespace deepum::core {

// `most_blocks`: by device, the most UM blocks that were allocated.
std::vector<std::uint8_t> save_profile(const Names& names, const ExecutionTable& executions,
                                       const LaunchHistory& history,
                                       std::span<const std::uint64_t> most_blocks);
// False: the bytes are no profile of this version, or the tables are not empty; then nothing is
// changed. `foretold` gets what `most_blocks` was. `history_bytes`: of the memory for tables, what
// the history may have.
bool load_profile(std::span<const std::uint8_t> bytes, const deepum_core_settings& settings,
                  std::size_t history_bytes, Names& names, ExecutionTable& executions,
                  LaunchHistory& history, std::span<std::uint64_t> foretold);

}  // namespace deepum::core
