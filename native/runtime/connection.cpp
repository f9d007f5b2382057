#include "connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "descriptors.hpp"

namespace deepum::runtime {
namespace {

constexpr std::size_t kMostSettings = 65536;  // deepum_hello.settings_bytes
constexpr std::size_t kMostText = 4096;

std::int64_t now_ms() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Waits for input through signals. False: time is up.
bool readable(int fd, int timeout_ms) noexcept {
  const std::int64_t until = now_ms() + timeout_ms;
  for (;;) {
    const std::int64_t left = until - now_ms();
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

// Whole "NAME=VALUE\0" entries, as many as fit.
void add_settings(std::vector<char>* message) {
  const std::size_t start = message->size();
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::size_t bytes = std::strlen(*entry) + 1;
    if (std::strncmp(*entry, "DEEPUM_", 7) != 0 ||
        message->size() - start + bytes > kMostSettings) {
      continue;
    }
    message->insert(message->end(), *entry, *entry + bytes);
  }
}

}  // namespace

int Connection::connect(const std::string& path) noexcept {
  close();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return ENAMETOOLONG;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Not blocking: a daemon that is stopped, with its queue full, must not stop us.
  socket_ = out_of_the_way(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket_ < 0) {
    return errno;
  }
  ucred peer{};
  socklen_t bytes = sizeof peer;
  int error = 0;
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    error = errno;
  } else if (::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
             peer.uid != ::geteuid()) {
    error = EPERM;
  }
  if (error != 0) {
    close();
  }
  return error;
}

Hello Connection::introduce(const SharedMemory& memory, int timeout_ms, std::string* text) {
  std::vector<char> message(sizeof(deepum_hello));
  add_settings(&message);
  deepum_hello hello{};
  std::memcpy(hello.magic, "DEEPUMHI", 8);
  hello.version = DEEPUM_WIRE_VERSION;
  hello.settings_bytes = static_cast<std::uint32_t>(message.size() - sizeof hello);
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::memcpy(message.data(), &hello, sizeof hello);

  const int descriptors[3] = {memory.memory_fd, memory.daemon_fd, memory.mover_fd};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  iovec part{message.data(), message.size()};
  msghdr sent{};
  sent.msg_iov = &part;
  sent.msg_iovlen = 1;
  sent.msg_control = control;
  sent.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&sent);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  if (::sendmsg(socket_, &sent, MSG_NOSIGNAL) < 0) {
    *text = std::strerror(errno);
    return Hello::kFailed;
  }

  if (!readable(socket_, timeout_ms)) {
    *text = "it does not answer";
    return Hello::kSilent;
  }
  char answer[sizeof(deepum_welcome) + kMostText];
  const ssize_t length = ::recv(socket_, answer, sizeof answer, 0);
  deepum_welcome welcome{};
  if (length < static_cast<ssize_t>(sizeof welcome)) {
    *text = length == 0 ? "it closed the connection" : "its answer is cut off";
    return Hello::kFailed;
  }
  std::memcpy(&welcome, answer, sizeof welcome);
  if (std::memcmp(welcome.magic, "DEEPUMNO", 8) == 0) {
    const auto rest = static_cast<std::size_t>(length) - sizeof welcome;
    text->assign(answer + sizeof welcome, welcome.text_bytes < rest ? welcome.text_bytes : rest);
    for (char& letter : *text) {
      if (static_cast<unsigned char>(letter) < ' ' || letter == 0x7f) {
        letter = ' ';
      }
    }
    return Hello::kRefused;
  }
  if (std::memcmp(welcome.magic, "DEEPUMOK", 8) != 0 || welcome.version != DEEPUM_WIRE_VERSION) {
    *text = "its answer is of another version";
    return Hello::kFailed;
  }
  return Hello::kWelcome;
}

bool Connection::hung_up() const noexcept {
  char byte;
  const ssize_t length = ::recv(socket_, &byte, 1, MSG_DONTWAIT);
  return length >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Connection::close() noexcept {
  if (socket_ >= 0) {
    ::close(socket_);
  }
  socket_ = -1;
}

}  // namespace deepum::runtime
