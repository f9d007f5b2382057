#include "installation.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace deepum::runtime {

std::string own_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_library), &info) == 0 || !info.dli_fname) {
    return {};
  }
  char* real = ::realpath(info.dli_fname, nullptr);
  if (!real) {
    return {};
  }
  std::string path = real;
  std::free(real);
  return path;
}

std::string daemon_name() {
  const std::string library = own_library();
  struct stat file{};
  if (::stat(library.c_str(), &file) != 0) {
    file = {};
  }
  char change[64];
  std::snprintf(change, sizeof change, " %" PRId64 " %" PRId64 ".%09ld",
                static_cast<std::int64_t>(file.st_size),
                static_cast<std::int64_t>(file.st_mtim.tv_sec),
                static_cast<long>(file.st_mtim.tv_nsec));
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : library + change) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  char name[32];  // short: a Unix socket's path has at most 107 bytes
  std::snprintf(name, sizeof name, "daemon-%08" PRIx32,
                static_cast<std::uint32_t>(hash ^ (hash >> 32)));
  return name;
}

}  // namespace deepum::runtime
