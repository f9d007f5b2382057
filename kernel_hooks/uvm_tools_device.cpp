#include "uvm_tools_device.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

bool digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The module's own file first: containers have /sys, not always /proc/driver.
int release(char* text, std::size_t bytes) noexcept {
  for (const char* path : {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"}) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      continue;
    }
    char read_text[512];
    const ssize_t length = ::read(file, read_text, sizeof read_text - 1);
    ::close(file);
    read_text[length > 0 ? length : 0] = '\0';
    if (const char* found = find_driver_release(read_text)) {
      std::size_t size = 0;
      while ((digit(found[size]) || found[size] == '.') && size + 1 < bytes) {
        ++size;
      }
      std::memcpy(text, found, size);
      text[size] = '\0';
      return 0;
    }
  }
  return -ENODEV;
}

int open_device() noexcept {
  const int descriptor = ::open("/dev/nvidia-uvm-tools", O_RDWR | O_CLOEXEC);
  return descriptor < 0 ? -errno : descriptor;
}

// Those that libcuda has opened, told by what they are: a container may have put the device
// elsewhere.
int uvm_descriptors(int* descriptors, int most) noexcept {
  struct stat device{};
  if (::stat("/dev/nvidia-uvm", &device) != 0 || !S_ISCHR(device.st_mode)) {
    return -ENOENT;
  }
  DIR* const folder = ::opendir("/proc/self/fd");
  if (!folder) {
    return -errno;
  }
  int count = 0;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat one{};
    const int descriptor = std::atoi(entry->d_name);
    if (digit(entry->d_name[0]) && ::fstat(descriptor, &one) == 0 && S_ISCHR(one.st_mode) &&
        one.st_rdev == device.st_rdev) {
      if (count < most) {
        descriptors[count] = descriptor;
      }
      ++count;
    }
  }
  ::closedir(folder);
  return count;
}

int control(int descriptor, unsigned long request, void* argument) noexcept {
  return ::ioctl(descriptor, request, argument) < 0 ? -errno : 0;
}

constexpr deepum_uvm_tools_table kKernelModule{release, open_device, uvm_descriptors, control,
                                               nullptr};

}  // namespace

const char* find_driver_release(const char* text) noexcept {
  for (const char* at = text; *at; ++at) {
    if ((at == text || at[-1] == ' ') && digit(at[0]) && digit(at[1]) && digit(at[2]) &&
        at[3] == '.' && digit(at[4])) {
      return at;
    }
  }
  return nullptr;
}

const deepum_uvm_tools_table& uvm_tools_device() noexcept {
  void* const library = driver_library(false);
  const void* const own = library ? real_dlsym(library, DEEPUM_UVM_TOOLS_DEVICE) : nullptr;
  return own ? *static_cast<const deepum_uvm_tools_table*>(own) : kKernelModule;
}

}  // namespace deepum::hooks
