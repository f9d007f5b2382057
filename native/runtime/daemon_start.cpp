#include "daemon_start.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "installation.hpp"

namespace deepum::runtime {
namespace {

// Of the settings only those that the daemon as a whole has; a session's own come with its hello.
bool for_the_daemon(const char* entry) noexcept {
  for (const char* kept : {"DEEPUM_RUNTIME_DIR=", "DEEPUM_DAEMON_IDLE=", "DEEPUM_METRICS="}) {
    if (std::strncmp(entry, kept, std::strlen(kept)) == 0) {
      return true;
    }
  }
  for (const char* dropped : {"DEEPUM_", "LD_PRELOAD=", "PYTHONSAFEPATH="}) {
    if (std::strncmp(entry, dropped, std::strlen(dropped)) == 0) {
      return false;
    }
  }
  return true;
}

// The nearest such file in the folders above the library: of
// PREFIX/lib/pythonX.Y/site-packages/deepum/lib/libdeepum.so the script is in PREFIX/bin, the
// daemon's module in deepum/daemon.
std::string above(const std::string& library, const char* wanted, int levels, int mode) {
  std::string folder = library;
  for (int up = 0; up < levels; ++up) {
    const auto slash = folder.rfind('/');
    if (slash == std::string::npos) {
      break;
    }
    folder.resize(slash);
    std::string path = folder + wanted;
    if (::access(path.c_str(), mode) == 0) {
      return path;
    }
  }
  return {};
}

}  // namespace

bool DaemonStart::begin(std::string* why) {
  std::vector<std::string> command;
  const std::string library = own_library();
  if (const char* interpreter = std::getenv("DEEPUM_DAEMON"); interpreter && *interpreter) {
    // By its file: what is called deepum there need not be this installation.
    const std::string own = above(library, "/daemon/__main__.py", 2, R_OK);
    command = own.empty() ? std::vector<std::string>{interpreter, "-m", "deepum.daemon"}
                          : std::vector<std::string>{interpreter, own};
  } else if (const std::string script = above(library, "/bin/deepum", 7, X_OK); !script.empty()) {
    command = {script, "daemon", "--detach"};
  } else {
    *why = "none runs, and none was found to start";
    return false;
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    if (for_the_daemon(*entry)) {
      environment.push_back(*entry);
    }
  }
  char safe_path[] = "PYTHONSAFEPATH=1";  // the program's folder may hold a module of any name
  environment.push_back(safe_path);
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&actions) != 0) {
    return false;
  }
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&actions);
    return false;
  }
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);  // the terminal's signals are the program's
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawn(&pid_, command[0].c_str(), &actions, &attributes,
                                  arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) {
    return true;
  }
  pid_ = -1;
  *why = command[0] + ": " + std::strerror(error);
  return false;
}

bool DaemonStart::hopeful(std::string* why) {
  if (pid_ > 0) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      pid_ = -1;
      failed_ = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    } else if (ended < 0 && errno != EINTR) {
      pid_ = -1;  // the program reaped it, or does not want to know of children
    }
  }
  if (failed_) {
    *why = "it could not be started";
  }
  return !failed_;
}

void DaemonStart::give_up() noexcept {
  if (pid_ <= 0) {
    return;
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    continue;
  }
  pid_ = -1;
}

void DaemonStart::reap_if_ended() noexcept {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) {
    pid_ = -1;
  }
}

}  // namespace deepum::runtime
