#include "swap_planner.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace deepum::swapadvisor {
namespace {

enum class State : std::uint8_t { kAway, kUntouched, kThere };

struct Resident {
  std::int32_t tensor;
  bool stale;  // the host's copy is older
};

struct Object {
  std::int32_t after_operation = kNone;  // that used what was in it
  std::int32_t after_move = kNone;       // by which that left
  double estimate = 0;                   // when it is free, if no operator had to wait
};

// What all passes over a schedule share.
struct Order {
  // By use of the graph: position of the next use that needs the content, those of the next
  // iteration behind all of this one; kNone: nobody does.
  std::vector<std::int32_t> next;
  std::vector<std::int32_t> first;  // by tensor: position of its first use
  std::vector<double> ends;         // by position, if no operator had to wait

  Order(const Graph& graph, std::span<const std::int32_t> schedule)
      : next(graph.use_count()), first(graph.tensors(), kNone), ends(schedule.size()) {
    const std::int32_t count = graph.operations();
    double now = 0;
    for (std::int32_t position = 0; position < count; ++position) {
      for (const Use& use : graph.uses(schedule[position])) {
        first[use.tensor] = first[use.tensor] == kNone ? position : first[use.tensor];
      }
      ends[position] = now += graph.operation_ns(schedule[position]);
    }
    std::vector<std::int32_t> following(graph.tensors(), kNone);
    for (std::int32_t tensor = 0; tensor < graph.tensors(); ++tensor) {
      if (graph.tensor(tensor).stays != 0) {
        following[tensor] = count + (graph.tensor(tensor).starts != 0 ? first[tensor] : count);
      }
    }
    for (std::int32_t position = count - 1; position >= 0; --position) {
      std::int32_t at = graph.first_use(schedule[position]);
      for (const Use& use : graph.uses(schedule[position])) {
        next[at++] = following[use.tensor];
        following[use.tensor] = use.reads != 0 ? position : kNone;
      }
    }
  }
};

class Pass {
 public:
  Pass(const Graph& graph, std::span<const std::int32_t> schedule, const Order& order,
       const Pool& pool, std::int32_t threshold, std::span<const Resident> initial)
      : graph_(graph),
        schedule_(schedule),
        order_(order),
        pool_(pool),
        threshold_(threshold),
        classes_(pool.counts.size()),
        state_(graph.tensors(), State::kAway),
        stale_(graph.tensors(), false),
        initial_(graph.tensors(), false),
        object_of_(graph.tensors(), kNone),
        held_in_(graph.tensors(), kNone),
        next_(graph.tensors(), kNone),
        last_(graph.tensors(), kNone),
        own_out_(graph.tensors(), kNone) {
    std::vector<std::int64_t> useful(classes_.size(), 0);
    for (const std::int32_t of : pool.class_of) {
      ++useful[of];
    }
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      for (std::int64_t n = std::min(useful[i], pool.counts[i]); n > 0; --n) {
        classes_[i].free.emplace(0.0, static_cast<std::int32_t>(objects_.size()));
        objects_.emplace_back();
      }
    }
    for (const Resident& resident : initial) {
      hold(resident);
    }
  }

  SwapPlan run() {
    SwapPlan plan;
    for (std::int32_t position = 0; position < graph_.operations(); ++position) {
      if (!visit(position)) {
        plan.stuck = position;
        return plan;
      }
    }
    finish();
    plan.moves = std::move(moves_);
    return plan;
  }

  // Parameters that are there at the end.
  std::vector<Resident> residents() const {
    std::vector<Resident> found;
    for (std::int32_t tensor = 0; tensor < graph_.tensors(); ++tensor) {
      if (state_[tensor] == State::kThere && is_parameter(tensor)) {
        found.push_back({tensor, stale_at_end_[tensor]});
      }
    }
    return found;
  }

 private:
  // Needed last comes last; of those needed at the same time, what needs no copy.
  using Candidate = std::tuple<std::int32_t, bool, std::int32_t>;
  struct Class {
    std::set<std::pair<double, std::int32_t>> free;  // when it is, by estimate, and object
    std::set<Candidate> candidates;
    std::set<std::pair<std::int32_t, std::int32_t>> untouched;  // position of its use, tensor
  };
  struct Miss {
    std::int32_t of_class;
    bool produced;  // by the operator: nothing is brought in
    std::int32_t tensor;
  };

  bool is_parameter(std::int32_t tensor) const {
    return graph_.tensor(tensor).starts != 0 && graph_.tensor(tensor).stays != 0;
  }

  Class& class_of(std::int32_t tensor) { return classes_[pool_.class_of[tensor]]; }

  void hold(const Resident& resident) {
    Class& mine = class_of(resident.tensor);
    held_in_[resident.tensor] = object_of_[resident.tensor] = mine.free.begin()->second;
    mine.free.erase(mine.free.begin());
    mine.untouched.emplace(order_.first[resident.tensor], resident.tensor);
    state_[resident.tensor] = State::kUntouched;
    stale_[resident.tensor] = resident.stale;
    initial_[resident.tensor] = true;
  }

  void add_free(Class& mine, std::int32_t object) {
    mine.free.emplace(objects_[object].estimate, object);
  }

  // As if it had never been there.
  void unhold(Class& mine) {
    const std::int32_t tensor = mine.untouched.rbegin()->second;
    mine.untouched.erase(std::prev(mine.untouched.end()));
    state_[tensor] = State::kAway;
    stale_[tensor] = initial_[tensor] = false;
    add_free(mine, object_of_[tensor]);
  }

  bool visit(std::int32_t position) {
    const std::span<const Use> uses = graph_.uses(schedule_[position]);
    misses_.clear();
    for (const Use& use : uses) {
      Class& mine = class_of(use.tensor);
      switch (state_[use.tensor]) {
        case State::kThere:
          mine.candidates.erase(candidate(use.tensor));
          break;
        case State::kUntouched:
          mine.untouched.erase({order_.first[use.tensor], use.tensor});
          state_[use.tensor] = State::kThere;
          break;
        case State::kAway:
          misses_.push_back({pool_.class_of[use.tensor], use.reads == 0, use.tensor});
          break;
      }
    }
    std::ranges::stable_sort(
        misses_, {}, [](const Miss& miss) { return std::pair(miss.of_class, miss.produced); });
    for (std::size_t begin = 0, end = 0; begin < misses_.size(); begin = end) {
      while (end < misses_.size() && misses_[end].of_class == misses_[begin].of_class) {
        ++end;
      }
      if (!give(std::span(misses_).subspan(begin, end - begin), position)) {
        return false;
      }
    }
    std::int32_t at = graph_.first_use(schedule_[position]);
    for (const Use& use : uses) {
      leave(use, order_.next[at++], position);
    }
    return true;
  }

  // Objects for what an operator misses of a class. Of those that are taken, what is brought in
  // gets the ones that are free first, and what the operator makes the others.
  bool give(std::span<const Miss> misses, std::int32_t position) {
    Class& mine = classes_[misses.front().of_class];
    while (mine.free.size() < misses.size()) {
      if (!mine.untouched.empty()) {
        unhold(mine);
      } else if (!evict(mine, position)) {
        return false;
      }
    }
    for (const Miss& miss : misses) {
      const auto taken = miss.produced ? std::prev(mine.free.end()) : mine.free.begin();
      const std::int32_t object = taken->second;
      mine.free.erase(taken);
      object_of_[miss.tensor] = object;
      state_[miss.tensor] = State::kThere;
      const Object& space = objects_[object];
      const std::int32_t own_out = miss.produced ? kNone : own_out_[miss.tensor];
      add(miss.produced ? DEEPUM_SWAPADVISOR_PLACE : DEEPUM_SWAPADVISOR_IN, miss.tensor, position,
          std::max(space.after_operation, last_[miss.tensor]), space.after_move, own_out);
    }
    return true;
  }

  bool evict(Class& mine, std::int32_t position) {
    auto found = mine.candidates.rbegin();
    while (found != mine.candidates.rend() && position - last_[std::get<2>(*found)] < threshold_) {
      ++found;
    }
    if (found == mine.candidates.rend()) {
      found = mine.candidates.rbegin();  // all were used a moment ago
    }
    if (found == mine.candidates.rend()) {
      return false;
    }
    const std::int32_t tensor = std::get<2>(*found);
    mine.candidates.erase(std::prev(found.base()));
    Object& object = objects_[object_of_[tensor]];
    object = {last_[tensor], kNone, order_.ends[last_[tensor]]};
    state_[tensor] = State::kAway;
    if (stale_[tensor]) {
      object.estimate += graph_.out_ns(tensor);
      object.after_move = copy_out(tensor, position);
    }
    add_free(mine, object_of_[tensor]);
    return true;
  }

  std::int32_t copy_out(std::int32_t tensor, std::int32_t position) {
    stale_[tensor] = false;
    return own_out_[tensor] = add(DEEPUM_SWAPADVISOR_OUT, tensor, position, last_[tensor]);
  }

  std::int32_t add(std::int32_t kind, std::int32_t tensor, std::int32_t position,
                   std::int32_t after_operation, std::int32_t after_move = kNone,
                   std::int32_t own_out = kNone) {
    moves_.push_back({kind,
                      tensor,
                      object_of_[tensor],
                      position,
                      after_operation,
                      {after_move, own_out},
                      kNone,
                      0,
                      0});
    return static_cast<std::int32_t>(moves_.size()) - 1;
  }

  Candidate candidate(std::int32_t tensor) const {
    return {next_[tensor], !stale_[tensor], tensor};
  }

  // The operator has used it.
  void leave(const Use& use, std::int32_t next, std::int32_t position) {
    const std::int32_t tensor = use.tensor;
    Class& mine = class_of(tensor);
    stale_[tensor] = stale_[tensor] || use.writes != 0;
    last_[tensor] = position;
    next_[tensor] = next;
    if (next == kNone) {
      objects_[object_of_[tensor]] = {position, kNone, order_.ends[position]};
      add_free(mine, object_of_[tensor]);
      state_[tensor] = State::kAway;
      stale_[tensor] = false;
    } else {
      mine.candidates.insert(candidate(tensor));
    }
  }

  // What is there at the end without having been there at the beginning leaves.
  void finish() {
    stale_at_end_ = stale_;
    for (std::int32_t tensor = 0; tensor < graph_.tensors(); ++tensor) {
      if (state_[tensor] == State::kThere && stale_[tensor] && !initial_[tensor]) {
        copy_out(tensor, graph_.operations());
      }
    }
    for (std::int32_t tensor = 0; tensor < graph_.tensors(); ++tensor) {
      if (initial_[tensor]) {
        object_of_[tensor] = held_in_[tensor];
        add(DEEPUM_SWAPADVISOR_HELD, tensor, 0, kNone);
      }
    }
  }

  const Graph& graph_;
  std::span<const std::int32_t> schedule_;
  const Order& order_;
  Pool pool_;
  std::int32_t threshold_;
  std::vector<Class> classes_;
  std::vector<Object> objects_;
  // By tensor.
  std::vector<State> state_;
  std::vector<bool> stale_, initial_, stale_at_end_;
  std::vector<std::int32_t> object_of_, held_in_, next_, last_, own_out_;
  std::vector<Miss> misses_;
  std::vector<Move> moves_;
};

}  // namespace

SwapPlan plan_swaps(const Graph& graph, std::span<const std::int32_t> schedule, const Pool& pool,
                    const Options& options) {
  const Order order(graph, schedule);
  std::vector<Resident> initial;
  SwapPlan plan;
  for (std::int32_t number = 0; number < options.passes && plan.stuck == kNone; ++number) {
    Pass pass(graph, schedule, order, pool, options.threshold, initial);
    plan = pass.run();
    if (plan.stuck == kNone) {
      initial = pass.residents();
    }
  }
  return plan;
}

}  // namespace deepum::swapadvisor
