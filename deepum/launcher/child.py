"""Runs a program in the foreground: standard streams, signals and exit status are its own."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from deepum.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, DeepumError

# asm-generic/siginfo.h: sent by the kernel, so by the terminal, which sent it to the whole
# foreground group.
_SI_KERNEL = 0x80
_FORWARDED = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
}
# By which somebody asks us to end.
_ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
_WATCHED = _FORWARDED | {signal.SIGCHLD}


def find_program(name: str, environment: Mapping[str, str]) -> str:
    """The file that `execvp` would run. Raises DeepumError with the exit code of env(1)."""
    path = environment.get("PATH", os.defpath)
    if found := shutil.which(name, path=path):
        return found
    candidates = (
        [Path(name)]
        if os.sep in name
        else [Path(folder or ".", name) for folder in path.split(os.pathsep)]
    )
    for candidate in candidates:
        if candidate.is_dir():
            if os.sep in name:
                raise DeepumError(f"{name}: is a folder; name a program", EXIT_NOT_EXECUTABLE)
        elif candidate.exists():
            raise DeepumError(
                f"{name}: is not executable; chmod +x it, or name its interpreter (such as python)",
                EXIT_NOT_EXECUTABLE,
            )
    raise DeepumError(f"{name}: no such program; check its name and PATH", EXIT_NOT_FOUND)


class Child:
    """A running program. Signals sent to us are passed on to it from `start` until `close`."""

    def __init__(
        self, program: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Starts it. Raises DeepumError when the system refuses."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        self.end_requested = False
        # With SIGCHLD ignored, as some parents leave it, the kernel would throw the exit status
        # away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            self.pid = os.posix_spawn(
                program,
                list(arguments),
                dict(environment),
                setsigmask=self._mask,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # those that Python ignores
            )
        except OSError as error:
            self.close()
            code = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
            raise DeepumError(
                (
                    f"{arguments[0]}: {error.strerror}; check that the file and its interpreter "
                    f"can be run here"
                ),
                code,
            ) from None

    def wait(self) -> int:
        """Passes signals on until the program ends; returns its wait status."""
        while True:
            # First look, then wait: its SIGCHLD may have come before this call.
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                # What ended it may still be waiting for us, as Ctrl-C does: nobody asks us to hurry
                # by it.
                while (info := signal.sigtimedwait(_WATCHED, 0)) is not None:
                    self.end_requested |= info.si_signo in _ENDING
                return status
            info = signal.sigwaitinfo(_WATCHED)
            self.end_requested |= info.si_signo in _ENDING
            if info.si_signo != signal.SIGCHLD and info.si_code != _SI_KERNEL:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, info.si_signo)

    def interrupted(self, seconds: float) -> bool:
        """Waits so long; True as soon as somebody asks us to end."""
        info = signal.sigtimedwait(_FORWARDED - {signal.SIGCONT}, seconds)
        self.end_requested |= info is not None and info.si_signo in _ENDING
        return info is not None

    def close(self) -> None:
        """Signals are ours again."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def how_it_ended(status: int) -> str:
    """The wait status in words: `was ended by SIGKILL`, `exited with code 3`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = {one.value: one.name for one in signal.Signals}
        return f"was ended by {known.get(number, f'signal {number}')}"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


def end_like(status: int) -> int:
    """The exit code of a wait status; for a signal's, ends this process by the same signal, so that
    the caller sees no difference.
    """
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
    )  # the program's core dump is the one that matters
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # where the signal did not end us, the shell's convention
