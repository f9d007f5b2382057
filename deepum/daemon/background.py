"""Plans made by a process of their own, beside the program and the daemon."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

from deepum.core import Plan, plan_files
from deepum.core.plan_requests import PlanInput, Request
from deepum.daemon.link import LinkRates
from deepum.paths import PACKAGE

# Of the whole process, at the lowest priority on a machine that is busy with the program.
MOST_SECONDS = 120.0
_WORKER = (sys.executable, "-P", "-m", "deepum.planners.worker")
_MOST_REASON_BYTES = 4096
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class BackgroundPlanning:
    """A `deepum.core.planned.Planning`: one worker process at a time. No call of it waits for the
    worker, since what it reads and writes are anonymous files.
    """

    def __init__(
        self,
        link: Callable[[], LinkRates],
        *,
        command: Sequence[str] = _WORKER,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        """link: asked when a plan is. command: reads a request from its standard input and writes a
        plan.
        """
        self._link = link
        self._command = command
        self._most_seconds = most_seconds
        self._worker: subprocess.Popen[bytes] | None = None
        self._plan: BinaryIO | None = None
        self._errors: BinaryIO | None = None
        self._until = 0.0
        self._refused: str | None = None  # why no worker could be started

    def begin(self, asked: PlanInput) -> None:
        """As `Planning` has it. That no process can be started is told by `poll`."""
        self.stop()
        rates = self._link()
        try:
            self._plan, self._errors = _anonymous("plan"), _anonymous("errors")
            with _anonymous("request") as request:
                request.write(Request.of(asked, rates.in_gbps, rates.out_gbps).encode())
                request.flush()
                request.seek(0)
                self._worker = subprocess.Popen(
                    self._command,
                    stdin=request,
                    stdout=self._plan,
                    stderr=self._errors,
                    env=_environment(),
                    cwd="/",
                    start_new_session=True,  # a terminal's signals are not for it
                )
        except OSError as error:
            self.stop()
            self._refused = f"the planner cannot be started: {error.strerror}"
        self._until = time.monotonic() + self._most_seconds

    def poll(self) -> Plan | str | None:
        """As `Planning` has it."""
        if (refused := self._refused) is not None:
            self._refused = None
            return refused
        if self._worker is None:
            return None
        code = self._worker.poll()
        if code is None:
            if time.monotonic() < self._until:
                return None
            self.stop()
            return f"planning took longer than {self._most_seconds:g} s"
        try:
            return self._result(code)
        finally:
            self.stop()

    def stop(self) -> None:
        """As `Planning` has it: the worker is gone afterwards."""
        self._refused = None
        if (worker := self._worker) is not None:
            self._worker = None
            if worker.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        for file in (self._plan, self._errors):
            if file is not None:
                file.close()
        self._plan = self._errors = None

    def _result(self, code: int) -> Plan | str:
        assert self._plan is not None and self._errors is not None
        if code != 0:
            return _last_line(self._errors) or f"the planner ended with code {code}"
        self._plan.seek(0)
        try:
            return plan_files.decode(self._plan.read())
        except ValueError as error:
            return f"the planner gave {error}"


def _anonymous(name: str) -> BinaryIO:
    """A file in memory that has no name in a folder."""
    return os.fdopen(os.memfd_create(f"deepum-{name}", os.MFD_CLOEXEC), "w+b")


def _environment() -> dict[str, str]:
    """Of the worker: of this installation, without the shim, on one core."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("DEEPUM_")
    }
    path = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(path)}


def _last_line(errors: BinaryIO) -> str:
    errors.seek(max(errors.seek(0, os.SEEK_END) - _MOST_REASON_BYTES, 0))
    lines = errors.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
