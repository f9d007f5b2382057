// The installation that this library is part of: a daemon of another one is none for us, since it
// may decide and speak otherwise.
#pragma once

#include <string>

namespace deepum::runtime {

// The file of this library, links resolved; empty if that cannot be told.
std::string own_library();

// The name that the daemon's files have in a runtime folder, without their endings. It follows from
// this library's file: its path, its size and the time of its last change, so that a daemon from
// before an upgrade is another one, too. deepum/paths.py computes the same.
std::string daemon_name();

}  // namespace deepum::runtime
