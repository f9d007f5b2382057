#include "reach_daemon.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>

#include "installation.hpp"

namespace deepum::runtime {
namespace {

constexpr int kConnectMilliseconds = 5000;

void pause_ms(long milliseconds) noexcept {
  timespec wait{milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (::nanosleep(&wait, &wait) != 0 && errno == EINTR) {
    continue;
  }
}

}  // namespace

std::string reach_daemon(const std::string& directory, Connection* connection,
                         DaemonStart* starter) {
  const std::string path = directory + "/" + daemon_name() + ".sock";
  bool begun = false;
  std::string why;
  int error = 0;
  for (int waited = 0; waited < kConnectMilliseconds; waited += 10) {
    // Before the look at the socket: a starter that ended well has left a socket behind.
    const bool hopeful = !begun || starter->hopeful(&why);
    error = connection->connect(path);
    if (error == 0) {
      return {};
    }
    if (error == ENAMETOOLONG || error == EPERM || error == EACCES || !hopeful) {
      break;
    }
    if (!begun && error != EAGAIN) {
      if (!starter->begin(&why)) {
        return why;
      }
      begun = true;
    }
    pause_ms(10);
  }
  starter->give_up();
  if (error == EPERM) {
    return path + " is somebody else's";
  }
  if (error == ENAMETOOLONG || error == EACCES) {
    return path + ": " + std::strerror(error);
  }
  return why.empty() ? "it does not come up" : why;
}

}  // namespace deepum::runtime
