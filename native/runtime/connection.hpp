// The program's end of the daemon's socket: hello, welcome, and whether the daemon is still there.
#pragma once

#include <string>

#include "shared_memory.hpp"

namespace deepum::runtime {

enum class Hello { kWelcome, kRefused, kSilent, kFailed };

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  // 0, or the errno: ENOENT and ECONNREFUSED when nobody listens there, EAGAIN when it cannot take
  // us now, EPERM when the one who listens is another user.
  int connect(const std::string& path) noexcept;
  // Sends the hello with our DEEPUM_* environment and waits for the answer. `text`: what the daemon
  // said against it, or the cause.
  Hello introduce(const SharedMemory& memory, int timeout_ms, std::string* text);
  int fd() const noexcept { return socket_; }
  // The daemon closed its end, or broke the rules by saying something.
  bool hung_up() const noexcept;
  void close() noexcept;

 private:
  int socket_ = -1;
};

}  // namespace deepum::runtime
