#include "state.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "figures.hpp"
#include "live_figures.hpp"
#include "pools.hpp"
#include "pump.hpp"
#include "stats.hpp"
#include "streams.hpp"
#include "thread.hpp"
#include "uvm_tools.hpp"

namespace deepum::simgpu {
namespace {

constexpr const char* kDefaultMachine = "v100-16gb";
constexpr int kMostDevices = 64;
// How long a wait may stand still in real time, with nothing left that could end it from inside,
// before it is given up.
constexpr std::chrono::seconds kPatience{60};

std::atomic<State*> instance{nullptr};
std::atomic<pid_t> owner{0};

bool unusable(const char* variable, const char* value, const char* next) {
  std::fprintf(stderr, "deepum: error: %s=%s: not usable; %s\n", variable, value, next);
  return false;
}

struct Settings {
  um_model::Machine machine{};
  std::string changed_name;
  um_model::Options options;
  bool concurrent = true;
  std::uint64_t managed_offset = 0;

  bool read() {
    const char* name = std::getenv("DEEPUM_SIM_MACHINE");
    if (name == nullptr || *name == '\0') name = kDefaultMachine;
    const um_model::Machine* const preset = um_model::find_machine(name);
    if (preset == nullptr) {
      return unusable("DEEPUM_SIM_MACHINE", name,
                      "name one of the machines in docs/simulated-gpu.md, such as v100-16gb");
    }
    const char* const figures = std::getenv("DEEPUM_SIM_FIGURES");
    const std::optional<um_model::Machine> made =
        um_model::with_figures(*preset, figures == nullptr ? "" : figures);
    if (!made) {
      return unusable("DEEPUM_SIM_FIGURES", figures,
                      "give figures of deepum_machine, as h2d_gbps=11.2,launch_ns=4100");
    }
    machine = *made;
    // Statistics name the machine: it is not the preset.
    if (figures != nullptr && *figures != '\0') {
      changed_name = std::string(name) + ", changed";
      machine.name = changed_name;
    }
    const char* const tools = std::getenv("DEEPUM_SIM_UVM_TOOLS");
    if (tools != nullptr && *tools != '\0' && !usable_uvm_tools(tools)) {
      return unusable("DEEPUM_SIM_UVM_TOOLS", tools,
                      "give a driver's release, as 580.65.06, or a word of docs/simulated-gpu.md");
    }
    std::uint64_t host = 0, devices = 1, seed = 0, access = 1;
    if (!numbers("DEEPUM_SIM_MEMORY", 0, 1ull << 46, options.memory_of_device) ||
        !number("DEEPUM_SIM_HOST_MEMORY", 0, 1ull << 46, host) ||
        !number("DEEPUM_SIM_DEVICES", 1, kMostDevices, devices) ||
        !number("DEEPUM_SIM_RANDOM_EVICTION", 0, ~0ull, seed) ||
        !number("DEEPUM_SIM_CONCURRENT_MANAGED_ACCESS", 0, 1, access) ||
        !number("DEEPUM_SIM_MANAGED_OFFSET", 0, um_model::kBlockBytes - 512, managed_offset)) {
      return false;
    }
    options.devices = static_cast<int>(devices);
    options.host_memory_bytes = host;
    options.random_eviction_seed = seed;
    if (managed_offset % 512 != 0) {
      return unusable("DEEPUM_SIM_MANAGED_OFFSET", std::getenv("DEEPUM_SIM_MANAGED_OFFSET"),
                      "give a multiple of 512, as allocations are aligned");
    }
    concurrent = access != 0;
    return true;
  }

  static bool plain(std::string_view text, std::uint64_t least, std::uint64_t most,
                    std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value >= least &&
           value <= most;
  }

  static bool number(const char* variable, std::uint64_t least, std::uint64_t most,
                     std::uint64_t& value) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == '\0' || plain(text, least, most, value)) return true;
    return unusable(variable, text, "give a plain number in range");
  }

  // With commas between.
  static bool numbers(const char* variable, std::uint64_t least, std::uint64_t most,
                      std::vector<std::uint64_t>& values) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return true;
    for (std::string_view rest = text;;) {
      const std::size_t comma = rest.find(',');
      if (!plain(rest.substr(0, comma), least, most, values.emplace_back()))
        return unusable(variable, text, "give plain numbers in range, with commas between");
      if (comma == std::string_view::npos) return true;
      rest.remove_prefix(comma + 1);
    }
  }
};

Settings& settings() {
  static auto* const read = new Settings;
  return *read;
}

// The first process of a run has the name that was asked for, as its event log has; those of others
// carry their id.
void record_work(State& state) {
  const char* const path = std::getenv("DEEPUM_SIM_RECORD");
  if (path == nullptr || *path == '\0') return;
  std::string name = path;
  const char* const folder = std::getenv("DEEPUM_STATS_DIR");
  if (folder != nullptr && *folder != '\0') {
    const int mark = open((std::string(folder) + "/work-recorded").c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mark < 0) name += "." + std::to_string(getpid());
    if (mark >= 0) close(mark);
  }
  name += ".work";
  if (!state.work_log.open(name)) {
    std::fprintf(stderr, "deepum: error: %s: %s; what the launches do is not recorded\n",
                 name.c_str(), std::strerror(errno));
    return;
  }
  state.engine.observe(&state.work_log);
}

}  // namespace

State::State()
    : machine(settings().machine),
      concurrent_managed_access(settings().concurrent),
      managed_offset(settings().managed_offset),
      devices(static_cast<std::size_t>(settings().options.devices)),
      engine(machine, settings().options),
      pump(std::make_unique<Pump>()) {
  for (std::size_t device = 0; device < devices.size(); ++device) {
    devices[device].memory_bytes = engine.memory_bytes(static_cast<int>(device));
  }
}

State* state() noexcept { return forked() ? nullptr : instance.load(std::memory_order_acquire); }

std::mutex& lock() noexcept {
  static auto* const mutex = new std::mutex;  // NOLINT(bugprone-unhandled-exception-at-new)
  return *mutex;
}

bool forked() noexcept {
  const pid_t pid = owner.load(std::memory_order_relaxed);
  return pid < 0;
}

// Without memory for this there is nothing to go on with.
// NOLINTBEGIN(bugprone-unhandled-exception-at-new)
CUresult initialise() noexcept {
  if (forked()) return CUDA_ERROR_NOT_INITIALIZED;
  if (state() != nullptr) return CUDA_SUCCESS;
  const std::lock_guard guard(lock());
  if (state() != nullptr) return CUDA_SUCCESS;
  if (!settings().read()) return CUDA_ERROR_INVALID_VALUE;
  auto* const made = new State;
  record_work(*made);
  begin_live_figures(*made);
  made->engine.on_discard([made](um_model::Range range) { poison(*made, range); });
  owner.store(getpid(), std::memory_order_relaxed);
  // The child has one thread, perhaps a lock that nobody will ever release, and no GPU: as with the
  // real driver, CUDA is unusable there.
  pthread_atfork(nullptr, nullptr, [] { owner.store(-1, std::memory_order_relaxed); });
  instance.store(made, std::memory_order_release);
  return CUDA_SUCCESS;
}

// NOLINTEND(bugprone-unhandled-exception-at-new)

void set_sticky(State& state, int device, CUresult error) {
  CUresult& sticky = state.devices[static_cast<std::size_t>(device)].sticky;
  if (sticky == CUDA_SUCCESS) sticky = error;
}

void collect_violations(State& state) {
  const auto& violations = state.engine.violations();
  for (; state.violations_seen < violations.size(); ++state.violations_seen) {
    const um_model::Violation& violation = violations[state.violations_seen];
    std::fprintf(stderr, "deepum-sim: a kernel touched 0x%llx: %s\n",
                 static_cast<unsigned long long>(violation.address), violation.reason);
    const Allocation* const allocation = state.memory.find(violation.address);
    set_sticky(state, allocation != nullptr ? allocation->device : 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

Call::Call(Need need, Role role) {
  state_ = forked() ? nullptr : instance.load(std::memory_order_acquire);
  if (state_ == nullptr) {
    error_ = need == Need::nothing ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  Thread& thread = this_thread();
  if (thread.in_host_function) {
    error_ = CUDA_ERROR_NOT_PERMITTED;
    return;
  }
  guard_ = std::unique_lock(lock());
  // While the engine stands still for a helper's function, helpers may go on: what they ask for is
  // queued.
  Pump& pump = *state_->pump;
  const auto may_go_on = [&] {
    const bool only_moves =
        thread.kind != ThreadKind::program && (role == Role::migration || role == Role::neutral);
    return !pump.serving || state_->ended || only_moves;
  };
  pump.finished.wait(guard_, may_go_on);
  ++state_->activity;
  if (need == Need::context) {
    context_ = current_context();
    if (context_ == nullptr) {
      error_ = CUDA_ERROR_INVALID_CONTEXT;
    } else if (!state_->contexts.contains(context_) || !context_->active) {
      error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    } else {
      error_ = state_->devices[static_cast<std::size_t>(context_->device)].sticky;
    }
    if (error_ != CUDA_SUCCESS) return;
  }
  if (role == Role::program || (role == Role::synchronise && thread.kind == ThreadKind::unknown)) {
    thread.kind = ThreadKind::program;
  } else if ((role == Role::migration || role == Role::poll) &&
             thread.kind == ThreadKind::unknown) {
    thread.kind = ThreadKind::helper;
    thread.helper = pump.serving ? um_model::kServer : state_->engine.add_helper();
  }
  if (role == Role::neutral) return;
  if (role != Role::poll) thread.polls_in_vain = 0;
  acting_ = true;
  if (thread.kind == ThreadKind::helper) {
    host_ = thread.helper;
  } else {
    state_->engine.program_call();
  }
}

Call::~Call() {
  if (state_ == nullptr || !guard_.owns_lock()) return;
  collect_violations(*state_);
  if (acting_) update_live_figures(*state_);
}

bool Call::poll(const std::function<bool()>& complete) {
  constexpr double kPollNs = 500, kLongestNs = 100e3;
  int& in_vain = this_thread().polls_in_vain;
  const bool sleeps = host_ != um_model::kProgram && in_vain != 0;
  // It may be far behind, for the time that it spent in a call that blocked it.
  if (sleeps) engine().keep_up(host_);
  engine().spend(host_, sleeps ? std::min(kLongestNs, std::ldexp(kPollNs, in_vain)) : kPollNs);
  const bool done = complete();
  in_vain += in_vain < 16 && !done;
  return done;
}

int Call::device() const { return context_ != nullptr ? context_->device : 0; }

CUresult Call::block(const std::function<void()>& advance, const std::function<bool()>& done) {
  Pump& pump = *state_->pump;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    advance();
    collect_violations(*state_);
    if (context_ != nullptr) {
      const CUresult sticky = state_->devices[static_cast<std::size_t>(context_->device)].sticky;
      if (sticky != CUDA_SUCCESS) return sticky;
    }
    if (done()) break;
    const bool user_code = pump.running || !pump.due.empty();
    pump.finished.wait_for(guard_, std::chrono::microseconds(user_code ? 100000 : 200));
    if (user_code) since = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() - since > kPatience) {
      std::fprintf(stderr, "deepum-sim: a stream waits for a value that nobody writes; given up\n");
      set_sticky(*state_, device(), CUDA_ERROR_LAUNCH_TIMEOUT);
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
  }
  if (host_ == um_model::kProgram) {
    trim_pools(*state_, host_);
    note_blocking_call(*state_);
  }
  return CUDA_SUCCESS;
}

}  // namespace deepum::simgpu
