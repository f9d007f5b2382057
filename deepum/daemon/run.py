"""Starting the daemon: in the foreground for a person, or on demand for a program."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from deepum import __version__
from deepum.configuration.resolve import resolve
from deepum.configuration.setting import Value
from deepum.daemon.place import AlreadyRunningError
from deepum.daemon.server import Server
from deepum.errors import DeepumError
from deepum.paths import PACKAGE, make_private_folder, runtime_folder

_MOST_LOG_BYTES = 1 << 20


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        # In one piece: sessions speak from threads of their own.
        sys.stderr.write(f"deepum: {text}\n")
        sys.stderr.flush()


def _tell_metrics(server: Server, values: Mapping[str, Value]) -> None:
    if port := values["metrics"]:
        server.tell_metrics(int(port))


def foreground(environment: Mapping[str, str]) -> None:
    """Serves until a signal ends it, talking to standard error. Raises DeepumError."""
    folder = runtime_folder(environment)
    values = resolve({}, environment, reader="daemon")
    server = Server(folder, 0, _say)
    _tell_metrics(server, values)
    print(f"deepum: serving {folder}", file=sys.stderr, flush=True)
    server.serve()


def on_demand(environment: Mapping[str, str]) -> int:
    """Serves until it has been idle for DEEPUM_DAEMON_IDLE seconds; returns the exit code. Another
    daemon in place is no failure.
    """
    folder = runtime_folder(environment)
    with contextlib.suppress(DeepumError, OSError):
        make_private_folder(folder)
        log = _Log(folder / "daemon.log")
        try:
            values = resolve({}, environment, reader="daemon")
            server = Server(folder, int(values["daemon_idle"] or 0), log.write)
        except AlreadyRunningError:
            return 0
        except DeepumError as error:
            log.write(error.line)
            return error.exit_code
        log.write(f"began: version {__version__} of {PACKAGE}")
        _tell_metrics(server, values)
        server.serve()
        log.write("ended")
        return 0
    return 1


class _Log:
    """A log file that does not grow for ever."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            mode = (
                "a" if self._path.exists() and self._path.stat().st_size < _MOST_LOG_BYTES else "w"
            )
            with self._path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
