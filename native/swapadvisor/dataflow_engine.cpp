#include "dataflow_engine.hpp"

#include <functional>
#include <limits>
#include <queue>

namespace deepum::swapadvisor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool takes_time(const Move& move) {
  return move.kind == DEEPUM_SWAPADVISOR_IN || move.kind == DEEPUM_SWAPADVISOR_OUT;
}

// Nodes are numbered: operators by position, then moves.
class Engine {
 public:
  Engine(const Graph& graph, std::span<const std::int32_t> schedule, std::span<Move> moves,
         std::span<Run> runs)
      : graph_(graph),
        schedule_(schedule),
        moves_(moves),
        runs_(runs),
        operations_(graph.operations()),
        waiting_(operations_ + moves.size(), 0) {
    successors_ = Lists(waiting_.size(), [this](auto add) { each_edge(add); });
    each_edge([this](std::int32_t, std::int32_t after) { ++waiting_[after]; });
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const std::int32_t node = operations_ + static_cast<std::int32_t>(i);
      if (takes_time(moves[i]) && waiting_[node] == 0) {
        make_ready(node);
      }
      moves[i].order = kNone;
    }
  }

  double run() {
    double now = 0;
    std::int32_t left = operations_;
    for (;;) {
      start(now);
      double next = kNever;
      for (const Stream& stream : streams_) {
        next = stream.node != kNone && stream.end < next ? stream.end : next;
      }
      if (next == kNever) {
        return left == 0 ? now : kNever;
      }
      now = next;
      for (Stream& stream : streams_) {
        if (stream.node != kNone && stream.end <= now) {
          left -= stream.node < operations_ ? 1 : 0;
          end(stream.node);
          stream.node = kNone;
        }
      }
    }
  }

 private:
  struct Stream {
    std::int32_t node = kNone;
    double end = 0;
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  };

  template <typename Add>
  void each_edge(Add add) const {
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      const Move& move = moves_[i];
      if (!takes_time(move)) {
        continue;
      }
      const std::int32_t node = operations_ + static_cast<std::int32_t>(i);
      if (move.after_operation != kNone) {
        add(move.after_operation, node);
      }
      for (const std::int32_t before : move.after_moves) {
        if (before != kNone) {
          add(operations_ + before, node);
        }
      }
      if (move.position < operations_) {
        add(node, move.position);
      }
    }
  }

  void make_ready(std::int32_t node) {
    const bool out = moves_[node - operations_].kind == DEEPUM_SWAPADVISOR_OUT;
    streams_[out ? 2 : 1].ready.push(node);
  }

  void end(std::int32_t node) {
    for (const std::int32_t after : successors_[node]) {
      if (--waiting_[after] == 0 && after >= operations_) {
        make_ready(after);
      }
    }
  }

  void start(double now) {
    Stream& compute = streams_[0];
    if (compute.node == kNone && position_ < operations_ && waiting_[position_] == 0) {
      compute.node = position_;
      compute.end = now + graph_.operation_ns(schedule_[position_]);
      runs_[position_] = {now, compute.end, order_++};
      ++position_;
    }
    for (Stream* stream : {&streams_[1], &streams_[2]}) {
      if (stream->node != kNone || stream->ready.empty()) {
        continue;
      }
      stream->node = stream->ready.top();
      stream->ready.pop();
      Move& move = moves_[stream->node - operations_];
      stream->end =
          now + (stream == &streams_[1] ? graph_.in_ns(move.tensor) : graph_.out_ns(move.tensor));
      move.start_ns = now;
      move.end_ns = stream->end;
      move.order = order_++;
    }
  }

  const Graph& graph_;
  std::span<const std::int32_t> schedule_;
  std::span<Move> moves_;
  std::span<Run> runs_;
  std::int32_t operations_, position_ = 0, order_ = 0;
  std::vector<std::int32_t> waiting_;
  Lists successors_;
  Stream streams_[3];
};

}  // namespace

double run_engine(const Graph& graph, std::span<const std::int32_t> schedule, std::span<Move> moves,
                  std::span<Run> runs) {
  return Engine(graph, schedule, moves, runs).run();
}

}  // namespace deepum::swapadvisor
