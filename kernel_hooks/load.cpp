// Loading and forking.
#include <pthread.h>

#include "allocations.hpp"
#include "callers.hpp"
#include "declared_reads.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "memory.hpp"
#include "observed_faults.hpp"
#include "pending_frees.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "sharing.hpp"
#include "shim_settings.hpp"
#include "streams.hpp"

namespace deepum::hooks {
namespace {

// The child has the parent's memory, but neither its threads nor its session. A parent that had not
// used CUDA leaves nothing behind here, and the child starts afresh; otherwise CUDA does not work
// in the child anyway.
void in_child() {
  if (inert.load(std::memory_order_relaxed)) {
    return;
  }
  inside = false;
  abandon_declared_in_child();
  runtime::abandon_in_child();
  runtime::Allocations::instance().abandon_in_child();
  abandon_streams_in_child();
  abandon_functions_in_child();
  abandon_graphs_in_child();
  abandon_pending_in_child();
  abandon_memory_in_child();
  abandon_callers_in_child();
  abandon_sharing_in_child();
  abandon_faults_in_child();
}

[[gnu::constructor]] void load() {
  inert.store(runtime::settings().disabled, std::memory_order_relaxed);
  if (!runtime::settings().disabled) {
    pthread_atfork(nullptr, nullptr, in_child);
  }
}

}  // namespace
}  // namespace deepum::hooks
