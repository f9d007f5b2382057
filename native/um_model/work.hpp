// What can be queued on a stream.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "handles.hpp"
#include "kernel.hpp"

namespace deepum::um_model {

class StreamQueue;

// One cuEventRecord: an event names the latest one, a wait the one that was latest when it was
// queued.
struct Recording {
  bool done = false;
  double time = 0;
  std::vector<struct Op*> waiters;  // each the Wait that its stream has come to
};

// A word in memory that streams wait for and write.
struct ValueWord {
  std::uint64_t value = 0;
  // Each the WaitValue that its stream has come to.
  std::vector<std::pair<std::uint64_t, struct Op*>> waiters;
};

struct KernelWork {
  Kernel kernel;
  bool counted = true;  // a launch; else a memset or a copy inside the device
};
struct BulkCopy {  // between host and device
  bool to_device;
  std::vector<Range> managed;  // rows of the side that may be unified memory
  std::uint64_t bytes;
  std::function<void()> effect;
};
struct HostCopy {  // takes stream time only
  double ns;
  std::function<void()> effect;
};
struct Migration {  // prefetch, or discard and prefetch
  std::vector<Range> ranges;
  int location;
  std::uint64_t discard;  // its number among the discards; 0: a prefetch only
};
struct Discard {
  std::vector<Range> ranges;
  std::uint64_t number;
};
struct Record {
  std::shared_ptr<Recording> recording;
};
struct Wait {
  std::shared_ptr<Recording> recording;
};
struct HostFunction {
  std::function<void()> function;
};
struct Service {
  std::function<void()> function;
};
struct WaitValue {
  ValueWord* word;
  std::uint64_t least;
};
struct WriteValue {
  ValueWord* word;
  std::uint64_t value;
};
struct Hold {
  std::function<bool()> ready;
};

struct Op {
  StreamQueue* stream;
  double arrival;  // ns, when the host had queued it
  std::variant<KernelWork, BulkCopy, HostCopy, Migration, Discard, Record, Wait, HostFunction,
               Service, WaitValue, WriteValue, Hold>
      work;
};

// The stream's side of an engine's work: told once, when the operation is complete.
void complete(Op& op, double now);

}  // namespace deepum::um_model
