// What the driver does with a prefetch that is queued behind an event that has not come.
#pragma once

namespace deepum::runtime {

enum class Deferral {
  kUnknown,
  kDefers,  // the call returns at once, and the driver moves the memory later
  kBlocks,  // the call returns when the event has come
};

}  // namespace deepum::runtime
