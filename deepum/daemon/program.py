"""The program behind a session: which process it is, and since when it is served."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deepum.statistics.live_figures import read_live_figures

_MOST_CHARACTERS = 500  # of a command line


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """The process on the other end, 0 where it cannot be named here, and its user."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    pid, user, _ = struct.unpack("3i", credentials)
    return max(pid, 0), user


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        parts = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        text = " ".join(part.decode(errors="replace") for part in parts)
        # Whatever it is called, it takes one line and moves no cursor.
        return "".join(c if c.isprintable() else "?" for c in text)[:_MOST_CHARACTERS] or "?"
    return "?"


@dataclass(frozen=True)
class ServedProgram:
    """A process, as the kernel names it and as it names itself, which may differ in a container."""

    kernel_pid: int  # 0: the kernel does not name it here
    own_pid: int
    environment: Mapping[str, str]  # its DEEPUM_* variables
    began_at: float = field(default_factory=time.time)
    command_line: str = "?"

    @classmethod
    def of(cls, kernel_pid: int, own_pid: int, environment: Mapping[str, str]) -> ServedProgram:
        """With the command line that it has now."""
        command_line = _command_line(kernel_pid) if kernel_pid else "?"
        return cls(kernel_pid, own_pid, environment, command_line=command_line)

    @property
    def pid(self) -> int:
        """As it is shown."""
        return self.kernel_pid or self.own_pid

    @property
    def device(self) -> str:
        """`sim:MACHINE` or `cuda`."""
        machine = self.environment.get("DEEPUM_SIM_MACHINE")
        return f"sim:{machine}" if machine else "cuda"

    def simulated(self) -> dict[str, float]:
        """The simulated GPUs' counters as they are now, all devices together; {} where there are
        none.
        """
        folder = self.environment.get("DEEPUM_STATS_DIR")
        if not folder or "DEEPUM_SIM_MACHINE" not in self.environment:
            return {}
        # The latest image of a process that replaced itself by exec.
        first = Path(folder) / f"sim-{self.own_pid}.live"
        later = sorted(first.parent.glob(f"sim-{self.own_pid}-*.live"), key=lambda p: len(p.name))
        for path in (*reversed(later), first):
            with contextlib.suppress(OSError, ValueError):
                figures = read_live_figures(path)
                return {
                    name: figures[name]
                    for name in figures
                    if isinstance(figures[name], int | float)
                }
        return {}

    def terminate(self) -> bool:
        """Asks the process to end by SIGTERM. False: it is gone, or is not ours to ask."""
        if not self.kernel_pid:
            return False
        try:
            handle = os.pidfd_open(self.kernel_pid)  # while the session lives, so does the process
            try:
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            finally:
                os.close(handle)
        except OSError:
            return False
        return True
