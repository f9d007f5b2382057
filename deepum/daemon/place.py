"""A daemon's place in a runtime folder: one for each installation, since programs are served by a
daemon of their own version only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path

from deepum.errors import DeepumError
from deepum.paths import daemon_files

_LOCK_SECONDS = 5.0  # that a daemon which is about to end may take to give the lock up


class AlreadyRunningError(DeepumError):
    """Another daemon serves this folder for this installation."""


class Place:
    """The lock and the socket of this installation's daemon, ours from the construction until
    `leave`.
    """

    def __init__(self, folder: Path) -> None:
        """Takes the lock. Raises AlreadyRunningError when another daemon answers there."""
        self._folder = folder
        self._files = daemon_files(folder)
        self._lock = self._take_lock()
        self._sweep()

    def _take_lock(self) -> int:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            fd = _open(self._files.lock, os.O_CREAT)
            if _locked(fd, self._files.lock):
                return fd
            os.close(fd)
            if self._answers() or time.monotonic() > until:
                raise AlreadyRunningError(
                    f"{self._folder}: another daemon serves it; end that one first, or set "
                    f"DEEPUM_RUNTIME_DIR"
                ) from None
            time.sleep(0.02)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                probe.connect(str(self._files.socket))
            except OSError:
                return False
            return True

    def _sweep(self) -> None:
        """Takes away what killed daemons of other installations have left, such as of versions that
        are gone.
        """
        for lock in self._folder.glob("daemon-*.lock"):
            if lock == self._files.lock:
                continue
            with contextlib.suppress(OSError):
                fd = _open(lock)
                try:
                    if _locked(fd, lock):
                        for kind in (".sock", ".new", ".lock"):
                            lock.with_suffix(kind).unlink(missing_ok=True)
                finally:
                    os.close(fd)

    def listen(self) -> socket.socket:
        """The socket, not blocking. Raises DeepumError."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        # Under another name until it listens: who finds the socket must not be refused. Both may be
        # there from a daemon that was killed.
        making, path = self._files.making, self._files.socket
        making.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            listener.bind(str(making))
            listener.listen(64)
            making.rename(path)
        except OSError as error:
            listener.close()
            raise DeepumError(
                f"{path}: {error.strerror or error}; set DEEPUM_RUNTIME_DIR to another "
                f"folder, with a short name"
            ) from None
        finally:
            os.umask(mask)
        return listener

    def hide(self) -> None:
        """No program finds the socket any more."""
        self._files.socket.unlink(missing_ok=True)

    def leave(self) -> None:
        """The place is free. Whoever waits for the lock sees that its file is another one
        by now.
        """
        self._files.lock.unlink(missing_ok=True)
        os.close(self._lock)


def _open(lock: Path, more: int = 0) -> int:
    return os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | more, 0o600)


def _locked(fd: int, path: Path) -> bool:
    """Locks the file; false if another process has, or if it is not the one of that name
    any more.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False
