#include "connection.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "allocation_ledger.hpp"
#include "log.hpp"
#include "records.h"
#include "ring.h"

extern char** environ;

namespace deepum::runtime {
namespace {

constexpr int kStartSeconds = 5;
constexpr std::size_t kMaxSettings = 65536;

int try_connect(const std::string& path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

bool starts_with(const char* text, std::string_view prefix) noexcept { return std::strncmp(text, prefix.data(), prefix.size()) == 0; }

// The daemon serves many programs: nothing of this one's session may stick to it, least of all the shim itself.
bool daemon_keeps(const char* variable) noexcept {
  if (starts_with(variable, "LD_PRELOAD=")) {
    return false;
  }
  if (!starts_with(variable, "DEEPUM_")) {
    return true;
  }
  return starts_with(variable, "DEEPUM_RUNTIME_DIR=") || starts_with(variable, "DEEPUM_DAEMON_IDLE=") ||
         starts_with(variable, "DEEPUM_LOG=");
}

// `$DEEPUM_DAEMON -m deepum.daemon`; else the deepum script of the prefix that this library is installed in
// (PREFIX/lib/pythonX.Y/site-packages/deepum/lib/libdeepum.so).
std::vector<std::string> daemon_command() {
  if (const char* python = std::getenv("DEEPUM_DAEMON"); python != nullptr && *python != '\0') {
    return {python, "-m", "deepum.daemon"};
  }
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&join_daemon), &self) == 0 || self.dli_fname == nullptr) {
    return {};
  }
  std::string at = self.dli_fname;
  for (int up = 0; up < 6; ++up) {
    const auto slash = at.find_last_of('/');
    if (slash == std::string::npos) {
      return {};
    }
    at.resize(slash);
  }
  const std::string script = at + "/bin/deepum";
  return ::access(script.c_str(), X_OK) == 0 ? std::vector<std::string>{script, "daemon"} : std::vector<std::string>{};
}

// Through a shell that ends at once, so that the daemon is nobody's child and this program gets no zombie.
bool start_daemon() {
  std::vector<std::string> command = daemon_command();
  if (command.empty()) {
    errno = ENOENT;
    return false;
  }
  command.insert(command.begin(), {"/bin/sh", "-c", "\"$@\" &", "sh"});
  std::vector<char*> arguments;
  for (std::string& word : command) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (daemon_keeps(*variable)) {
      environment.push_back(*variable);
    }
  }
  environment.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t shell = -1;
  const int error = ::posix_spawn(&shell, "/bin/sh", &files, &attributes, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    return false;
  }
  while (::waitpid(shell, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

std::string settings_text() {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (starts_with(*variable, "DEEPUM_") && text.size() + std::strlen(*variable) + 1 <= kMaxSettings) {
      text.append(*variable, std::strlen(*variable) + 1);
    }
  }
  return text;
}

bool send_hello(int socket, const Descriptors& descriptors) {
  const std::string text = settings_text();
  deepum_hello hello{};
  std::memcpy(hello.magic, "DEEPUMHI", 8);
  hello.version = DEEPUM_WIRE_VERSION;
  hello.settings_bytes = static_cast<std::uint32_t>(text.size());
  hello.pid = static_cast<std::uint32_t>(::getpid());
  iovec parts[] = {{&hello, sizeof hello}, {const_cast<char*>(text.data()), text.size()}};
  const int fds[] = {descriptors.memory, descriptors.daemon, descriptors.mover};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

bool receive_welcome(int socket, std::string* why) {
  struct {
    deepum_welcome welcome;
    char text[1024];
  } answer{};
  pollfd wait{socket, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, kStartSeconds * 1000);
  } while (ready < 0 && errno == EINTR);
  const ssize_t got = ready > 0 ? ::recv(socket, &answer, sizeof answer - 1, 0) : -1;
  if (got < static_cast<ssize_t>(sizeof answer.welcome)) {
    *why = ready == 0 ? "it does not answer" : "it closed the connection";
    return false;
  }
  if (std::memcmp(answer.welcome.magic, "DEEPUMOK", 8) == 0 && answer.welcome.version == DEEPUM_WIRE_VERSION) {
    return true;
  }
  if (std::memcmp(answer.welcome.magic, "DEEPUMNO", 8) == 0) {
    *why = answer.text;
  } else {
    *why = "it speaks another protocol version; end the old daemon";
  }
  return false;
}

}  // namespace

int join_daemon(const Descriptors& descriptors, std::string* why) noexcept {
  try {
    const std::string directory = ledger_directory();
    if (directory.empty()) {
      *why = "no usable runtime directory; set DEEPUM_RUNTIME_DIR to a folder of your own";
      return -1;
    }
    const std::string path = directory + "/daemon.sock";
    int socket = try_connect(path);
    if (socket < 0) {
      if (!start_daemon()) {
        *why = std::string("it cannot be started: ") + std::strerror(errno) +
               "; start the program with deepum run, or set DEEPUM_DAEMON to its Python";
        return -1;
      }
      for (int tries = 0; socket < 0 && tries < kStartSeconds * 50; ++tries) {
        const timespec pause{0, 20'000'000};
        ::nanosleep(&pause, nullptr);
        socket = try_connect(path);
      }
    }
    if (socket < 0) {
      *why = "it did not come up within 5 s; run deepum daemon by hand to see why";
      return -1;
    }
    if (!send_hello(socket, descriptors)) {
      *why = std::string("the hello could not be sent: ") + std::strerror(errno);
    } else if (receive_welcome(socket, why)) {
      return socket;
    }
    ::close(socket);
    return -1;
  } catch (...) {  // out of memory
    return -1;
  }
}

bool hung_up(int socket) noexcept {
  pollfd wait{socket, POLLIN | POLLRDHUP, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

}  // namespace deepum::runtime
