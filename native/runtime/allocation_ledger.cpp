#include "allocation_ledger.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deepum::runtime {
namespace {

constexpr std::uint64_t kSlots = 1024;

// A process is its id and the tick it started at (field 22 of /proc/PID/stat), so that a reused id
// is another process. 0: no such.
std::uint64_t start_ticks(pid_t pid) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  char text[1024];
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (length <= 0) {
    return 0;
  }
  text[length] = 0;
  const char* at = std::strrchr(text, ')');  // the name in front may hold anything
  for (int field = 2; at && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

std::uint64_t owner_word(pid_t pid, std::uint64_t ticks) noexcept {
  return static_cast<std::uint64_t>(pid) << 32 | (ticks & 0xffffffff);
}

bool alive(std::uint64_t owner) noexcept {
  const auto pid = static_cast<pid_t>(owner >> 32);
  if (::kill(pid, 0) != 0 && errno == ESRCH) {
    return false;
  }
  const std::uint64_t ticks = start_ticks(pid);
  return ticks == 0 || owner_word(pid, ticks) == owner;  // no /proc: believe the id
}

}  // namespace

struct AllocationLedger::Slot {
  std::atomic<std::uint64_t> owner;  // 0: free
  std::atomic<std::uint64_t> bytes;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

bool AllocationLedger::open(const std::string& directory, const std::string& gpu) noexcept try {
  if (directory.empty()) {
    return false;
  }
  const std::string path = directory + "/managed-" + gpu;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return false;
  }
  struct stat status{};
  constexpr std::size_t kBytes = kSlots * sizeof(Slot);
  bool usable =
      ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (usable && status.st_size < static_cast<off_t>(kBytes)) {
    usable = ::ftruncate(fd, kBytes) == 0;
  }
  void* memory =
      usable ? ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (memory == MAP_FAILED) {
    return false;
  }
  slots_ = static_cast<Slot*>(memory);
  claim();
  return mine_ != nullptr;
} catch (...) {
  return false;
}

void AllocationLedger::claim() noexcept {
  const std::uint64_t self = owner_word(::getpid(), start_ticks(::getpid()));
  for (std::uint64_t i = 0; i < kSlots && !mine_; ++i) {
    std::uint64_t owner = slots_[i].owner.load();
    if (owner != 0 && owner != self && alive(owner)) {
      continue;
    }
    // A slot taken over still holds its last owner's bytes for a moment: too much is counted, never
    // too little.
    if (!slots_[i].owner.compare_exchange_strong(owner, self)) {
      continue;
    }
    slots_[i].bytes.store(own_.load());
    mine_ = slots_ + i;
  }
}

std::uint64_t AllocationLedger::others() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; slots_ && i < kSlots; ++i) {
    const std::uint64_t owner = slots_[i].owner.load();
    if (owner == 0 || slots_ + i == mine_) {
      continue;
    }
    if (const std::uint64_t bytes = slots_[i].bytes.load(); bytes != 0 && alive(owner)) {
      sum += bytes;
    }
  }
  return sum;
}

// Announced first, then checked: of two processes that race for the last bytes both may see too
// much, never both enough. Such a tie is broken by trying again at other moments.
bool AllocationLedger::take(std::uint64_t bytes, std::uint64_t limit) noexcept {
  if (bytes > limit) {
    return false;
  }
  if (slots_ && !mine_) {
    claim();
  }
  for (int tries = 0; tries < 4; ++tries) {
    const std::uint64_t mine = own_.fetch_add(bytes) + bytes;
    if (mine_) {
      mine_->bytes.fetch_add(bytes);
    }
    const std::uint64_t rest = others();
    if (mine <= limit && rest <= limit - mine) {
      return true;
    }
    give(bytes);
    if (mine > limit || rest == 0) {
      return false;
    }
    ::usleep(static_cast<useconds_t>(100 + (::getpid() * 37 + tries * 101) % 400));
  }
  return false;
}

void AllocationLedger::give(std::uint64_t bytes) noexcept {
  own_.fetch_sub(bytes);
  if (mine_) {
    mine_->bytes.fetch_sub(bytes);
  }
}

void AllocationLedger::close() noexcept {
  if (mine_) {
    mine_->bytes.store(0);
    mine_->owner.store(0);
  }
  mine_ = nullptr;
}

void AllocationLedger::abandon_in_child() noexcept {
  mine_ = nullptr;
  own_.store(0);  // the child claims a slot of its own if it ever allocates
}

std::string ledger_directory() noexcept try {
  std::string directory;
  if (const char* named = std::getenv("DEEPUM_RUNTIME_DIR"); named && *named) {
    directory = named;
  } else if (const char* user = std::getenv("XDG_RUNTIME_DIR"); user && *user) {
    directory = std::string(user) + "/deepum";
  } else {
    directory = "/tmp/deepum-" + std::to_string(::getuid());
  }
  ::mkdir(directory.c_str(), 0700);
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return {};
  }
  return directory;
} catch (...) {
  return {};
}

}  // namespace deepum::runtime
