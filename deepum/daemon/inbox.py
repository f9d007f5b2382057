"""What other threads ask of a session: calls that its own thread makes between two turns of its
loop, since a core is used by one thread at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


class SessionOverError(Exception):
    """The session ended before it came to the call."""


class Inbox:
    """Calls in waiting. `answer` and `close` are for the session's thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """wake: has the session's thread look, even if it sleeps."""
        self._wake = wake
        # Not empty: somebody asks. A look at it costs next to nothing, so that each turn may.
        self.waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._guard = threading.Lock()
        self._closed = False

    def ask(self, call: Callable[[], _Answer], seconds: float) -> _Answer:
        """What the call returns or raises in the session's thread. Raises SessionOverError;
        TimeoutError when the thread did not come to it in time, and then never makes the call.
        """
        future: Future[_Answer] = Future()
        with self._guard:
            if self._closed:
                raise SessionOverError
            self.waiting.append((call, future))
            self._wake()
        try:
            return future.result(seconds)
        except CancelledError:
            raise SessionOverError from None
        except TimeoutError:
            if future.cancel():
                raise
            return future.result()  # it is being made just now

    def wake(self) -> None:
        """Has the session's thread look. Nothing is woken any more once `close` has returned, so
        that what it was woken by may be closed as well.
        """
        with self._guard:
            if not self._closed:
                self._wake()

    def answer(self) -> None:
        """Makes the calls that wait."""
        while self.waiting:
            call, future = self.waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except Exception as error:  # for the thread that asked
                future.set_exception(error)

    def close(self) -> None:
        """No call is made any more."""
        with self._guard:
            self._closed = True
        while self.waiting:
            self.waiting.popleft()[1].cancel()
