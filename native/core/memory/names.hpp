// Names of allocations and of PyTorch blocks, which are equal from run to run, and where they live
// now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace deepum::core {

class Names {
 public:
  static constexpr std::size_t kBytes = 80;  // of a name, its node in the index included, about

  // The index of a name; a new one if need be.
  std::uint32_t intern(std::uint64_t name) {
    const auto [at, added] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) {
      names_.push_back({name, -1});
    }
    return at->second;
  }
  // The index of a name. False: nothing has it.
  bool find(std::uint64_t name, std::uint32_t& index) const {
    const auto found = index_.find(name);
    index = found != index_.end() ? found->second : 0;
    return found != index_.end();
  }
  std::uint64_t name(std::uint32_t index) const { return names_[index].name; }
  // The name stands for memory that begins with UM block `first` of that slot; slot -1: for none.
  void bind(std::uint32_t index, std::int64_t slot, std::uint32_t first = 0) {
    names_[index].slot = slot;
    names_[index].first = first;
  }
  std::int64_t slot(std::uint32_t index) const { return names_[index].slot; }
  std::uint32_t first(std::uint32_t index) const { return names_[index].first; }
  std::size_t size() const { return names_.size(); }
  std::size_t bytes() const { return names_.size() * kBytes; }

 private:
  struct Name {
    std::uint64_t name;
    std::int64_t slot = -1;
    std::uint32_t first = 0;
  };
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // looked up, never walked
};

}  // namespace deepum::core
