// Progress markers of a replayed program, as native/runtime/stream_markers.hpp and marker_table.hpp
// keep them in lock-step: one thread launches, so that no more than one launch is in flight, and no
// call fails.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "marker_limits.hpp"
#include "records.h"
#include "um_model/engine.hpp"

namespace deepum::simulate {

struct Marker {
  std::uint64_t sequence = 0;  // all launches of the stream up to here lie before the event
  std::uint64_t first = 0;     // of the launches behind the marker before it
  um_model::Event event = 0;
};

enum class Cover { nothing, marker, not_yet };

class StreamMarkers {
 public:
  // The launch is about to be asked for; until `launched` a marker cannot lie behind it.
  void reserve(std::uint64_t sequence);
  // True: a marker is due (native/runtime/stream_markers.hpp). `blocks`: that the launch may touch.
  bool launched(std::uint32_t interval, std::uint64_t blocks);
  void adopt(um_model::Stream stream) { stream_ = stream; }
  void destroyed();  // a marker lies behind its last launch; its id may be given to another stream
  const std::optional<um_model::Stream>& stream() const { return stream_; }
  bool unmarked() const { return unmarked_ != 0; }
  // Behind the last launch, unless there is one.
  bool record(um_model::Engine& engine, um_model::Host host);
  // How far the stream is by the program's clock (native/runtime/stream_markers.hpp).
  struct Progress {
    bool known = false;  // something was launched
    std::uint64_t completed = 0, begun = 0;
    std::uint64_t completed_at = 0;  // microseconds from 1; 0: not known
  };
  // `first`: behind which times are counted; of the first stream that is asked.
  Progress progress(um_model::Engine& engine, std::optional<um_model::Event>& first);
  // How far it is as its markers tell (native/runtime/marker_table.hpp).
  struct Reached {
    // Sequence: all its launches up to that one are done; UINT64_MAX: all are.
    std::uint64_t completed = UINT64_MAX;
    std::uint64_t begun = 0;  // and none behind that one has begun
  };
  Reached reached(um_model::Engine& engine) const;
  Cover cover(std::uint64_t sequence, Marker* marker) const;

 private:
  static constexpr std::uint64_t kKept = mover::kMarkersKept;
  std::optional<um_model::Stream> stream_;
  std::uint64_t emitted_ = 0;
  std::uint64_t in_flight_ = 0;  // sequence, 0: none
  std::uint64_t unmarked_ = 0;   // the first launch after the last marker
  std::uint32_t since_marker_ = 0;
  std::uint64_t blocks_since_marker_ = 0;
  std::uint64_t count_ = 0;
  std::vector<Marker> kept_;
  std::uint64_t milestones_made_ = 0;
  std::vector<Marker> milestones_;  // one a look, which is further back than markers are kept
};

using Markers = std::array<StreamMarkers, DEEPUM_MAX_STREAMS>;

}  // namespace deepum::simulate
