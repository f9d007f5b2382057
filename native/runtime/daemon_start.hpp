// Starting the daemon on demand (docs/architecture.md, A session).
#pragma once

#include <sys/types.h>

#include <string>

namespace deepum::runtime {

class DaemonStart {
 public:
  // `$DEEPUM_DAEMON -m deepum.daemon`, else the `deepum` script that belongs to this library.
  // False: `why` says what is wrong.
  bool begin(std::string* why);
  // Reaps the starter if it has ended (the daemon itself leaves our process tree). True while it
  // may still succeed.
  bool hopeful(std::string* why);
  void give_up() noexcept;  // ends a starter that came to nothing
  void reap_if_ended() noexcept;

 private:
  pid_t pid_ = -1;
  bool failed_ = false;
};

}  // namespace deepum::runtime
