"""What happened between two looks at a session."""

from __future__ import annotations

import os
from dataclasses import dataclass

from deepum.daemon.figures import SessionFigures


@dataclass(frozen=True)
class StepFigures:
    """From one call of `deepum.step()` to the next. Seconds; bytes; None: nobody knows. The GPU may
    still be at work on the step: nothing waits for it.
    """

    number: int  # steps of this program, from 1
    seconds: float  # by the host's clock
    gpu_seconds: float | None  # by the simulated GPU's
    bytes_in: int  # to the GPU: moved on the simulated one, asked for on a real one
    bytes_out: int  # to the host, likewise
    bytes_discarded: int  # dropped without a copy
    faults: int | None
    resident_bytes: int  # now
    allocated_bytes: int  # now


class Steps:
    """The steps of this process."""

    def __init__(self) -> None:
        self._before: SessionFigures | None = None
        self._number = 0
        self._pid = os.getpid()

    def end(self, now: SessionFigures) -> StepFigures | None:
        """A step ends with these figures; None: it is the first of its session."""
        if self._pid != os.getpid():  # a fork has steps of its own
            self.__init__()  # type: ignore[misc]
        before, self._before = self._before, now
        if before is None or before.session != now.session:
            return None
        self._number += 1
        return StepFigures(
            self._number,
            now.at_s - before.at_s,
            _difference(now.gpu_time_s, before.gpu_time_s),
            now.bytes_in - before.bytes_in,
            now.bytes_out - before.bytes_out,
            now.bytes_discarded - before.bytes_discarded,
            _count(now.faults, before.faults),
            now.resident_bytes,
            now.allocated_bytes,
        )


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def _count(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else now - before
