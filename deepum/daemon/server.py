"""The daemon's socket: accepts programs of its own user, one thread for each; ends when nobody has
needed it for a while.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from deepum import __version__
from deepum.daemon.control import VERSION, Control, is_control, send_line
from deepum.daemon.figures import DaemonFigures, SessionFigures
from deepum.daemon.hello import RefusedError, answer, receive
from deepum.daemon.inbox import SessionOverError
from deepum.daemon.metrics import text
from deepum.daemon.metrics_server import MetricsServer
from deepum.daemon.place import Place
from deepum.daemon.program import peer_of
from deepum.daemon.session import Session
from deepum.host import resident_bytes
from deepum.paths import PACKAGE, daemon_files, make_private_folder

_HELLO_SECONDS = 5.0
_MOST_SESSIONS = 256
_MOST_WATCHERS = 16
_DESCRIPTORS = 4 * _MOST_SESSIONS + 64  # four a session
_CROWDED_SECONDS = 0.05  # before the next look at a connection that could not be taken


def _allow_descriptors(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(
                resource.RLIMIT_NOFILE,
                (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
            )


class Server:
    """Serves a runtime folder. `idle_seconds` 0: for ever."""

    def __init__(self, folder: Path, idle_seconds: int, log: Callable[[str], None]) -> None:
        """Takes the folder's lock and listens. Raises DeepumError; AlreadyRunningError when another
        daemon of this installation answers.
        """
        self._idle_seconds = idle_seconds
        self._write_log = log
        self._folder = folder
        self._began_at, self._began_s = time.time(), time.monotonic()
        make_private_folder(folder)
        _allow_descriptors(_DESCRIPTORS)
        self._place = Place(folder)
        self._sessions: dict[threading.Thread, Session | None] = {}
        # Connections without a hello yet, the oldest first.
        self._greeting: dict[threading.Thread, socket.socket] = {}
        self._control = Control(self)
        self._watching: dict[threading.Thread, socket.socket] = {}
        self._served = self._refused = 0
        self._metrics: MetricsServer | None = None
        self._guard = threading.Lock()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._ending = False
        self._idle_since = time.monotonic()
        self._listener = self._place.listen()

    def _log(self, text: str) -> None:
        self._write_log(" ".join(text.split()))  # one line, whatever a program's settings hold

    def stop(self, *_: object) -> None:
        """Asks `serve` to return; fit to be a signal handler."""
        self._ending = True
        self._wake()

    def _wake(self) -> None:
        """Has `serve` look anew."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")

    def serve(self) -> None:
        """Returns after `stop`, or when there has been no session for `idle_seconds`. Sessions end
        before it does.
        """
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        self._idle_since = time.monotonic()
        try:
            while not self._ending:
                left = self._seconds_left()
                poll = select.poll()  # no descriptor of its own: there may be none left
                poll.register(self._listener, select.POLLIN)
                poll.register(self._wake_read, select.POLLIN)
                ready = poll.poll(None if left is None else 1000 * left)
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
                if any(fd == self._listener.fileno() for fd, _ in ready):
                    self._accept()
                elif self._seconds_left() == 0 and self._may_leave():
                    break
        finally:
            self._close()

    def tell_metrics(self, port: int) -> None:
        """On that port, until the daemon ends. One that cannot be had is a line in the log."""
        try:
            self._metrics = MetricsServer(port, self._metrics_page)
        except OSError as error:
            self._log(
                f"warning: metrics: port {port}: {error.strerror}; set DEEPUM_METRICS to another"
            )

    def _metrics_page(self) -> str:
        return text(self.figures(), self.session_figures())

    def sessions(self) -> list[Session]:
        """Those that are served now, in the order of their beginnings."""
        with self._guard:
            return [session for session in self._sessions.values() if session is not None]

    def session_figures(self) -> list[SessionFigures]:
        """Of each of them that is not just ending."""
        found = []
        for session in self.sessions():
            with contextlib.suppress(SessionOverError):
                found.append(session.figures())
        return found

    def figures(self) -> DaemonFigures:
        """Of the daemon, as they are now."""
        with self._guard:
            sessions = sum(session is not None for session in self._sessions.values())
            served, refused, watchers = self._served, self._refused, len(self._watching)
        return DaemonFigures(
            pid=os.getpid(),
            version=__version__,
            package=str(PACKAGE),
            socket=str(daemon_files(self._folder).socket),
            began_at=self._began_at,
            uptime_s=time.monotonic() - self._began_s,
            idle_s=self._idle_seconds,
            sessions=sessions,
            served=served,
            refused=refused,
            watchers=watchers,
            memory_bytes=resident_bytes(),
            metrics_port=self._metrics.port if self._metrics is not None else None,
        )

    def _seconds_left(self) -> float | None:
        """Until we have been idle long enough; None while there is no such time."""
        with self._guard:
            if self._sessions or not self._idle_seconds:
                return None
            return max(0.0, self._idle_since + self._idle_seconds - time.monotonic())

    def _may_leave(self) -> bool:
        """Takes the socket away, then looks once more: a program may have connected in between, and
        must not be left alone.
        """
        self._place.hide()
        if not self._accept():
            return True
        self._listener.close()
        self._listener = self._place.listen()
        return False

    def _accept(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError:  # no descriptors: the program waits in the queue
            self._make_room()
            time.sleep(_CROWDED_SECONDS)
            return False
        connection.setblocking(True)
        thread = threading.Thread(target=self._serve_one, args=(connection,), daemon=True)
        with self._guard:
            crowded = (
                sum(session is not None for session in self._sessions.values()) >= _MOST_SESSIONS
            )
            if not crowded:
                self._sessions[thread] = None
                self._greeting[thread] = connection
        if crowded:
            self._refuse(connection, f"already serves {_MOST_SESSIONS} programs")
            return True
        if len(self._greeting) > _MOST_SESSIONS:
            self._make_room()
        try:
            thread.start()
        except RuntimeError:
            with self._guard:
                self._forget(thread)
            self._refuse(connection, "has no room for another thread")
        return True

    def _refuse(self, connection: socket.socket, why: str) -> None:
        self._count_refusal()
        answer(
            connection,
            f"daemon: {why}; end some programs, or set DEEPUM_RUNTIME_DIR to use another daemon",
        )
        connection.close()

    def _make_room(self) -> None:
        """Lets the connection go that has said nothing for the longest time."""
        with self._guard:
            oldest = next(iter(self._greeting), None)
            if oldest is not None:
                with contextlib.suppress(OSError):
                    self._greeting.pop(oldest).shutdown(socket.SHUT_RDWR)

    def _count_refusal(self) -> None:
        with self._guard:
            self._refused += 1

    def _forget(self, thread: threading.Thread) -> None:
        """Under the guard."""
        if thread not in self._watching:
            self._idle_since = time.monotonic()
        self._sessions.pop(thread, None)
        self._greeting.pop(thread, None)
        self._watching.pop(thread, None)

    def _watch(self, connection: socket.socket) -> None:
        """A client of the control channel, which keeps no daemon from ending."""
        thread = threading.current_thread()
        with self._guard:
            crowded = len(self._watching) >= _MOST_WATCHERS
            self._watching[thread] = connection
            self._sessions.pop(thread, None)
            self._greeting.pop(thread, None)
        self._wake()
        if crowded:
            error = f"daemon: already has {_MOST_WATCHERS} clients that watch; close one of them"
            connection.recv(1)
            send_line(connection, {"version": VERSION, "error": error})
            return
        self._control.serve(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        hello = None
        try:
            connection.settimeout(_HELLO_SECONDS)
            pid, user = peer_of(connection)
            if user != os.getuid():
                raise RefusedError(
                    "daemon: belongs to another user; set DEEPUM_RUNTIME_DIR to a folder of "
                    "your own"
                )
            if is_control(connection):
                self._watch(connection)
                return
            hello = receive(connection)
            with self._guard:
                self._greeting.pop(threading.current_thread(), None)
            if hello is None:
                return
            session = Session(hello, pid)
            with self._guard:
                self._sessions[threading.current_thread()] = session
                self._served += 1
            if self._ending:
                session.stop()
            connection.settimeout(None)
            answer(connection)
            self._log(f"session of process {session.pid} began")
            fault = session.serve(connection)
            self._log(f"session of process {session.pid} ended{': ' + fault if fault else ''}")
        except RefusedError as refusal:
            self._count_refusal()
            self._log(f"refused: {refusal}")
            answer(connection, str(refusal))
        except Exception as error:  # whatever a program sent, nobody else may notice
            self._count_refusal()
            self._log(f"refused: hello: {error!r}")
            answer(connection, f"hello: {error}; unset the DEEPUM_* variables that are not needed")
        finally:
            with self._guard:  # before it is closed: nobody may shut another one with its number
                self._forget(threading.current_thread())
            connection.close()
            if hello is not None:
                hello.close()
            self._wake()

    def _close(self) -> None:
        self._place.hide()
        if self._metrics is not None:
            self._metrics.close()
        self._listener.close()
        with self._guard:
            running = dict(self._sessions)
            watching = dict(self._watching)
            for connection in (*self._greeting.values(), *watching.values()):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for session in running.values():
            if session is not None:
                session.stop()
        for thread in (*running, *watching):
            thread.join(10)
        self._place.leave()
