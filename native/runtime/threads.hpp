// Threads of our own inside the program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace deepum::runtime {

// The program's signals are for the program's threads. False: it could not be made.
inline bool start_thread(pthread_t* thread, const char* name, void* (*body)(void*),
                         void* data) noexcept {
  sigset_t all, kept;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &kept);
  const bool started = ::pthread_create(thread, nullptr, body, data) == 0;
  ::pthread_sigmask(SIG_SETMASK, &kept, nullptr);
  if (started) {
    ::pthread_setname_np(*thread, name);
  }
  return started;
}

// As calls with a time limit want it.
inline timespec realtime_in(int milliseconds) noexcept {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += milliseconds % 1000 * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    ++until.tv_sec;
  }
  return until;
}

// False: it did not end in time, and is left to itself.
inline bool join_or_leave(pthread_t thread, int timeout_ms) noexcept {
  const timespec until = realtime_in(timeout_ms);
  if (::pthread_timedjoin_np(thread, nullptr, &until) == 0) {
    return true;
  }
  ::pthread_detach(thread);
  return false;
}

}  // namespace deepum::runtime
