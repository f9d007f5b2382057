// Observed faults: when they are taken from their source, and what the daemon is told.
//
// In lock-step the program's own threads take them, every so many launches and at each wait and
// free, so that a simulated run is the same bit for bit. Otherwise a thread of ours does, and no
// launch pays for it. Nothing is observed unless the daemon asks for it (runtime::faults_wanted).
// With DEEPUM_FAULTS=times no source is opened, and the looks tell how far streams are alone.
// CUPTI is not used after another user of it came.
#pragma once

#include <atomic>

namespace deepum::hooks {

// Whether faults are taken by the program's threads; false too while nothing ever will be.
extern std::atomic<bool> faults_taken_here;
void look_for_faults_after_launches() noexcept;
void look_for_faults_now() noexcept;

// A context is there, and the session, if there is to be one. Cheap when already done.
void begin_observing_faults() noexcept;
// The program is about to launch.
inline void faults_before_launch() noexcept {
  if (faults_taken_here.load(std::memory_order_relaxed)) [[unlikely]] {
    look_for_faults_after_launches();
  }
}
// It has waited, or is about to free memory, whose address may soon mean another allocation.
inline void faults_at_rest() noexcept {
  if (faults_taken_here.load(std::memory_order_relaxed)) [[unlikely]] {
    look_for_faults_now();
  }
}
// Somebody else wants CUPTI: it is left to them, for good. Returns once no call of ours to it is
// under way.
void give_cupti_away() noexcept;
void abandon_faults_in_child() noexcept;

}  // namespace deepum::hooks
