// An array of zeros whose pages take no memory until they are used.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace deepum::runtime {

template <typename T>
class ZeroPages {
  static_assert(std::is_trivially_destructible_v<T>, "nothing is destroyed");

 public:
  explicit ZeroPages(std::size_t count) : bytes_(count * sizeof(T)) {  // throws std::bad_alloc
    void* const at =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      throw std::bad_alloc();
    }
    of_ = static_cast<T*>(at);
  }
  ~ZeroPages() { ::munmap(of_, bytes_); }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;

  T& operator[](std::size_t i) noexcept { return of_[i]; }

 private:
  std::size_t bytes_;
  T* of_ = nullptr;
};

}  // namespace deepum::runtime
