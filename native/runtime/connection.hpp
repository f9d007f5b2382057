// Reaching the daemon: its socket, starting it on demand, the hello.
#pragma once

#include <string>

namespace deepum::runtime {

struct Descriptors {  // sent with the hello, in this order
  int memory, daemon, mover;
};

// The connected socket, or -1 with one line in *why. Takes up to 5 s when a daemon has to be started.
int join_daemon(const Descriptors& descriptors, std::string* why) noexcept;

// Whether the other end has closed the connection.
bool hung_up(int socket) noexcept;

}  // namespace deepum::runtime
