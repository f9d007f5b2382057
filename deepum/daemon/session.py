"""One program's session: events out of its ring, through a core, commands back."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from deepum.configuration.resolve import resolve
from deepum.configuration.setting import Value
from deepum.core import Core, CoreStatistics, Plan, Ring, RingError
from deepum.daemon.figures import SessionFigures
from deepum.daemon.hello import Hello, RefusedError
from deepum.daemon.inbox import Inbox, SessionOverError
from deepum.daemon.planning import PLANNED, SessionPlanning, session_planning
from deepum.daemon.program import ServedProgram
from deepum.daemon.recorder import Recorder, give_path_back, take_path
from deepum.daemon.report import Report
from deepum.daemon.sources import load_plan, load_profile, make_core, save_plan, save_profile
from deepum.daemon.steering import Changes, LiveSettings
from deepum.daemon.telling import MoverState, tell
from deepum.errors import UsageError

# Looks at the ring before going to sleep, about 50 us: in lock-step the next launch comes a few
# microseconds after the last decision, and a wake-up through the eventfd would cost more than all
# the rest of the crossing.
_LOCK_STEP_SPIN = 1500
_FULL_RING_SECONDS = 0.0005
# Between looks at a ring that had events a moment ago: events wait this long at most.
_NAP_SECONDS = 0.0001
_NAPS = 200
_SOCKET_SPOKE = 2
_NUMBERS = itertools.count(1)
# Members of the ring's control page that the report has as they are at the end.
_COUNTED_BY_THE_PROGRAM = ("handles_refused", "allocations_refused", "allocatable_bytes")
_CLOSING = threading.Lock()  # one session at a time writes what outlives it
_ANSWER_SECONDS = 2.0  # that somebody who asks for figures waits for the loop


class Session:
    """Serves a program until its connection closes, its ring breaks, or `stop`."""

    def __init__(self, hello: Hello, pid: int = 0) -> None:
        """Prepares everything; nothing has been said to the program yet. pid: of the process on the
        other end, 0: as it says itself. Raises RefusedError; the descriptors are closed then.
        """
        self._hello = hello
        self.number = next(_NUMBERS)
        self.program = ServedProgram.of(pid, hello.pid, hello.environment)
        self._inbox = Inbox(self._wake)
        self._why_stopping: str | None = None
        self._figures: SessionFigures | None = None
        self._recorder: Recorder | None = None
        self._ring: Ring | None = None
        self._planning: SessionPlanning | None = None
        try:
            self._prepare(hello)
        except BaseException:
            self._release()
            raise

    def _prepare(self, hello: Hello) -> None:
        folder = hello.environment.get("DEEPUM_STATS_DIR")
        try:
            self._values: dict[str, Value] = resolve({}, hello.environment, reader="daemon")
            self._lock_step = hello.environment.get("DEEPUM_SYNC", "").lower() in (
                "1",
                "true",
                "yes",
                "on",
            )
            self._live = LiveSettings.first(self._values, hello.environment)
            self._core: Core = make_core(self._values)
            profile = self._load_profile()
            plan = self._load_plan(hello.environment)
        except UsageError as error:
            raise RefusedError(str(error)) from None
        try:
            self._ring = Ring.from_fd(hello.memory_fd)
        except (RingError, OSError, ValueError) as error:
            raise RefusedError(
                f"hello: {error}; use the libdeepum.so of this installation"
            ) from None
        self._ring.tell_wants(self._core)  # the program may ask before its first launch
        if self._values["record"] is not None:
            try:
                self._recorder = Recorder(
                    take_path(Path(str(self._values["record"])), hello.pid, folder),
                    self._values,
                    profile,
                )
            except OSError as error:
                raise RefusedError(
                    f"record {self._values['record']}: {error.strerror}; choose another place"
                ) from None
        self._report = Report(Path(folder) if folder else None, hello.pid)
        if self._values["policy"] == PLANNED:
            self._planning = session_planning(
                self._core, hello.environment, self._report.warnings.append, plan
            )

    def _load_profile(self) -> bytes | None:
        if self._values["profile"] is None:
            return None
        path = Path(str(self._values["profile"]))
        if not os.path.lexists(path):
            return None
        return load_profile(path, self._values, self._core)

    def _load_plan(self, environment: Mapping[str, str]) -> Plan | None:
        """Raises UsageError."""
        if self._values["policy"] != PLANNED:
            return None
        if environment.get("DEEPUM_FAULTS", "off") == "off":
            raise UsageError(
                "policy planned: needs the times of launches; set DEEPUM_FAULTS=times as well"
            )
        if self._values["plan"] is None:
            return None
        path = Path(str(self._values["plan"]))
        return load_plan(path, self._values, self._core) if os.path.lexists(path) else None

    @property
    def pid(self) -> int:
        """The program's process id, as it gave it."""
        return self._hello.pid

    def stop(self, why: str = "the daemon ended") -> None:
        """Asks the session to end, from another thread; the program goes on without."""
        self._why_stopping = why
        self._inbox.wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it wakes all the same
            os.eventfd_write(self._hello.daemon_fd, 1)

    def figures(self) -> SessionFigures:
        """As they are now, from another thread; those of before, where the loop is busy. Raises
        SessionOverError.
        """
        try:
            core, mover = self._inbox.ask(self._sample, _ANSWER_SECONDS)
        except TimeoutError:
            if self._figures is None:
                raise SessionOverError from None
            return self._figures
        warnings = len(self._report.warnings)
        self._figures = tell(self.number, self.program, core, mover, self._live, warnings)
        return self._figures

    def _sample(self) -> tuple[CoreStatistics, MoverState]:
        assert self._ring is not None
        return self._core.statistics(), MoverState.of(self._ring)

    def steer(self, changes: Changes) -> None:
        """Changes settings, from another thread. Raises UsageError where that cannot be,
        SessionOverError, TimeoutError.
        """
        changes.check_policy(self._live.own_policy)
        self._inbox.ask(lambda: self._steer(changes), _ANSWER_SECONDS)

    def _steer(self, changes: Changes) -> None:
        ring, recorder = self._ring, self._recorder
        assert ring is not None
        if recorder is None:
            self._core.process(changes.records(ring.decided))
            ring.more_commands()
        else:
            recorder.steer(self._core, changes.records(recorder.decided))
        self._live = self._live.changed(changes)

    def serve(self, connection: socket.socket) -> str | None:
        """The loop. Returns what went wrong, None for an orderly end. Everything is released
        afterwards.
        """
        fault: str | None = None
        try:
            fault = self._loop(connection.fileno(), connection)
        except (
            Exception
        ) as error:  # whatever it is must neither end the daemon nor leave the program waiting
            fault = f"the session failed: {error!r}"
        finally:
            self._inbox.close()
            with _CLOSING:
                self._finish(fault)
        return fault

    def _loop(self, connection_fd: int, connection: socket.socket) -> str | None:
        ring, core = self._ring, self._core
        assert ring is not None
        daemon_fd, mover_fd = self._hello.daemon_fd, self._hello.mover_fd
        spin = _LOCK_STEP_SPIN if self._lock_step else 0
        planning = self._planning
        closed = False
        naps = 0
        requests = self._inbox.waiting
        while self._why_stopping is None:
            if requests:
                self._inbox.answer()
            recorder = self._recorder
            if recorder is None:
                turn = ring.turn(core)
                busy, wake, full = (
                    len(turn.events) > 0 or turn.commands > 0,
                    turn.wake_mover,
                    turn.blocked,
                )
            else:
                busy, wake, full = recorder.turn(ring, core)
                if recorder.failure is not None:
                    self._drop_recorder(f"the event log was given up: {recorder.failure.strerror}")
            if busy:
                naps = 0
            if planning is not None and planning.turned(busy):
                ring.tell_wants(core)
            if wake:
                with contextlib.suppress(BlockingIOError):  # full: it wakes all the same
                    os.eventfd_write(mover_fd, 1)
            if full:
                if closed or (closed := _is_closed(connection)):
                    # Nobody will ever make room; the last events are learned from, and recorded.
                    ring.program_ended()
                else:
                    time.sleep(_FULL_RING_SECONDS)
            elif not busy:
                if not self._lock_step and naps < _NAPS:
                    # Asleep on the clock and not on the eventfd: else the program pays for a system
                    # call at almost every launch.
                    naps += 1
                    time.sleep(_NAP_SECONDS)
                    continue
                if ring.broken:
                    return f"the ring was refused: {ring.broken}"
                if closed:
                    return None
                sleep_ms = -1 if planning is None else planning.sleep_ms
                if ring.wait(daemon_fd, connection_fd, spin, sleep_ms) == _SOCKET_SPOKE:
                    # One more look at the ring comes first: the last events were written before it
                    # closed.
                    closed = _is_closed(connection)
                    if not closed:
                        return "the program sent a message that nobody expected"
        return self._why_stopping

    def _drop_recorder(self, why: str) -> None:
        recorder, self._recorder = self._recorder, None
        self._report.warnings.append(why)
        if recorder is not None:
            with contextlib.suppress(OSError):
                recorder.close()
            give_path_back(recorder.path)

    def _finish(self, fault: str | None) -> None:
        """Profile and log before the report: whoever waits for the report finds them complete."""
        if fault is not None:
            self._report.warnings.append(fault)
        counted = dict.fromkeys(_COUNTED_BY_THE_PROGRAM, 0)
        if self._ring is not None:
            self._ring.leave()
            counted = {name: getattr(self._ring, name) for name in counted}
        statistics = self._core.statistics()
        try:
            if self._values["profile"] is not None and statistics.launches:
                save_profile(Path(str(self._values["profile"])), self._core)
        except OSError as error:
            self._report.warnings.append(
                f"profile {self._values['profile']}: {error.strerror}; nothing was saved"
            )
        plans = self._finish_planning()
        recorded = self._recorder.path if self._recorder is not None else None
        if self._recorder is not None:
            try:
                self._recorder.close()
            except OSError as error:
                self._report.warnings.append(
                    f"record {recorded}: {error.strerror}; the log is incomplete"
                )
        self._release()
        self._report.finish(
            self._core,
            self._values,
            record=str(recorded) if recorded else None,
            **counted,
            **plans,
        )

    def _finish_planning(self) -> dict[str, object]:
        """What the report says of plans; the one that is kept is written."""
        if self._planning is None:
            return {}
        self._planning.close()
        plan = self._planning.plan
        try:
            if self._values["plan"] is not None and plan is not None:
                save_plan(Path(str(self._values["plan"])), plan)
        except OSError as error:
            self._report.warnings.append(
                f"plan {self._values['plan']}: {error.strerror}; nothing was saved"
            )
        return {"plans": self._planning.summary()}

    def _release(self) -> None:
        if self._planning is not None:
            self._planning.close()
        if self._recorder is not None:
            give_path_back(self._recorder.path)
        if self._ring is not None:
            self._ring.close()
        self._hello.close()


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
