// Finding this installation's daemon of a runtime folder, or bringing one up.
#pragma once

#include <string>

#include "connection.hpp"
#include "daemon_start.hpp"

namespace deepum::runtime {

// Connects to its socket in the folder; if nobody answers, starts the daemon and tries for 5 s.
// Empty: connected. Else what is wrong.
std::string reach_daemon(const std::string& directory, Connection* connection,
                         DaemonStart* starter);

}  // namespace deepum::runtime
