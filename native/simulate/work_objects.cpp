#include "work_objects.hpp"

#include <algorithm>

namespace deepum::simulate {

um_model::Stream WorkObjects::stream(std::uint32_t number, std::uint32_t device) {
  const auto found = streams_.find(number);
  if (found != streams_.end()) {
    return found->second;
  }
  const um_model::Stream made = engine_.add_stream(static_cast<int>(device));
  streams_[number] = made;
  made_.push_back(made);
  return made;
}

um_model::Event WorkObjects::event(std::uint32_t number) {
  const auto found = events_.find(number);
  return found != events_.end() ? found->second : events_[number] = engine_.add_event();
}

void WorkObjects::map(const deepum_work_access& access, int device) {
  memory_[access.offset] = {next_, access.bytes};
  engine_.map_device({next_, access.bytes}, device);
  next_ += (access.bytes / um_model::kBlockBytes + 2) * um_model::kBlockBytes;
}

void WorkObjects::unmap(std::uint64_t address) {
  if (const auto found = memory_.find(address); found != memory_.end()) {
    engine_.unmap(found->second.address);
    memory_.erase(found);
  }
}

um_model::Range WorkObjects::range(const deepum_work_access& access) const {
  auto found = memory_.upper_bound(access.offset);
  if (found == memory_.begin()) {
    return {0, 0};
  }
  const auto& [address, place] = *--found;
  const std::uint64_t inside = access.offset - address;
  if (inside >= place.bytes) {
    return {0, 0};
  }
  return {place.address + inside, std::min(access.bytes, place.bytes - inside)};
}

}  // namespace deepum::simulate
