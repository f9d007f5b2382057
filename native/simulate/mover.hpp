// The mover in virtual time: the rules of native/mover on the model, which tests/simulate holds to
// the runtime: equal commands and times for a recorded run.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model_backend.hpp"
#include "mover_rules.hpp"
#include "records.h"

namespace deepum::simulate {

class Mover {
 public:
  using Answers = std::vector<std::pair<deepum_command, deepum_moved_status>>;
  // `blocking`: outside lock-step, the calls that are made once all that they follow is done.
  Mover(um_model::Engine& engine, mover::MoverOptions options, um_model::Blocking blocking,
        Markers& markers, Places& places)
      : host_(options.lock_step ? engine.add_helper() : engine.add_thread()),
        backend_(engine, host_, static_cast<int>(options.devices), blocking, markers, places),
        rules_(backend_, options) {}

  um_model::Host host() const { return host_; }
  ModelBackend& backend() { return backend_; }
  Gates& gates() { return backend_.gates(); }
  const Gates& gates() const { return backend_.gates(); }

  void accept(const deepum_command& command) {
    fresh_ = true;
    rules_.accept(command);
  }
  bool has_work() const { return fresh_ || rules_.waiting() != 0; }
  // Carries out what can be now. What became of commands that failed.
  Answers round() {
    fresh_ = false;
    rules_.round(gates().processed());
    return backend_.take_answers();
  }
  // Since the latest round, running free: something waits for a marker, or for the driver to have
  // done what it was given.
  bool wants_marker() const { return rules_.wants_marker(); }
  bool looks_again_soon() const { return rules_.looks_again_soon(); }
  bool polls_events() const { return backend_.blocking() != um_model::Blocking::kNone; }

 private:
  um_model::Host host_;  // the mover's thread
  ModelBackend backend_;
  mover::MoverRules rules_;
  bool fresh_ = false;  // commands that no round has looked at
};

}  // namespace deepum::simulate
