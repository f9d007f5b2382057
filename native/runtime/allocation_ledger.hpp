// How much managed memory every process of this user has on one GPU: a small file in the runtime
// directory, a slot a process, mapped by all. No locks: a process writes its own slot only, so one
// that is stopped or killed blocks nobody; the slots of dead processes are not counted and are
// taken over.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace deepum::runtime {

class AllocationLedger {
 public:
  AllocationLedger() = default;
  AllocationLedger(const AllocationLedger&) = delete;
  AllocationLedger& operator=(const AllocationLedger&) = delete;
  ~AllocationLedger() { close(); }

  // Joins the ledger of a GPU. False: the file cannot be used (then this process counts alone).
  bool open(const std::string& directory, const std::string& gpu) noexcept;
  // Takes `bytes` more unless the sum over all processes would exceed `limit`.
  bool take(std::uint64_t bytes, std::uint64_t limit) noexcept;
  void give(std::uint64_t bytes) noexcept;
  std::uint64_t others() const noexcept;  // bytes of all other live processes
  std::uint64_t own() const noexcept { return own_.load(std::memory_order_relaxed); }
  void close() noexcept;             // gives up the slot
  void abandon_in_child() noexcept;  // the slot is the parent's

 private:
  struct Slot;
  void claim() noexcept;

  std::atomic<std::uint64_t> own_{0};
  Slot* slots_ = nullptr;
  Slot* mine_ = nullptr;
};

// $DEEPUM_RUNTIME_DIR, else $XDG_RUNTIME_DIR/deepum, else /tmp/deepum-UID; made with mode 0700 if
// it is missing. Empty: cannot be used, or belongs to someone else.
std::string ledger_directory() noexcept;

}  // namespace deepum::runtime
