"""Where `top` looks and what it may do there: the daemon, over one connection at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from deepum.client.channel import Channel, NoDaemonError
from deepum.daemon.figures import DaemonFigures, SessionFigures
from deepum.daemon.steering import Changes

_Answer = TypeVar("_Answer")


class Source(Protocol):
    """What is looked at. All of these raise DeepumError."""

    def look(self) -> tuple[DaemonFigures | None, Sequence[SessionFigures]]:
        """The daemon, None where none runs, and its sessions."""

    def set(self, session: int, changes: Changes) -> None:
        """Changes settings of a session."""

    def end(self, session: int, detach: bool) -> None:
        """Asks its program to end, or ends its serving only."""


class DaemonSource:
    """The daemon of this user and installation, whenever there is one. One thread asks at a
    time.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._channel: Channel | None = None
        self._guard = threading.Lock()

    def look(self) -> tuple[DaemonFigures | None, Sequence[SessionFigures]]:
        """As `Source` has it."""
        try:
            return self._with(lambda channel: (channel.daemon(), channel.sessions()))
        except NoDaemonError:
            return None, []

    def set(self, session: int, changes: Changes) -> None:
        """As `Source` has it."""
        self._with(lambda channel: channel.set(session, changes))

    def end(self, session: int, detach: bool) -> None:
        """As `Source` has it."""
        self._with(lambda channel: channel.end(session, detach=detach))

    def close(self) -> None:
        """Leaves the daemon."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _with(self, ask: Callable[[Channel], _Answer]) -> _Answer:
        with self._guard:
            if self._channel is None:
                self._channel = Channel(self._environment)
            try:
                return ask(self._channel)
            except NoDaemonError:
                self.close()  # another one may run by the next time
                raise
