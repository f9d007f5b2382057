// The driver's events and the program's markers as native/mover names them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "lanes.hpp"
#include "stream_markers.hpp"

namespace deepum::runtime {

inline mover::EventHandle to_handle(CUevent event) noexcept {
  return reinterpret_cast<std::uintptr_t>(event);
}
inline CUevent to_event(mover::EventHandle handle) noexcept {
  return reinterpret_cast<CUevent>(handle);
}

inline mover::MarkerRef to_ref(const StreamMarkers& of, const Marker& marker) noexcept {
  return {reinterpret_cast<std::uintptr_t>(&of),
          marker.sequence,
          to_handle(marker.event),
          marker.incarnation,
          marker.generation,
          marker.number};
}

}  // namespace deepum::runtime
