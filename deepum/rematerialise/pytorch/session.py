"""`deepum.remat`: a block in which tensors take no more memory than a budget."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

import torch

from deepum.errors import UsageError
from deepum.pytorch.steps import Boundaries
from deepum.rematerialise.heuristics import DEFAULT, named
from deepum.rematerialise.pytorch.accessors import Accessors
from deepum.rematerialise.pytorch.automatic import Automatic, ChoiceStatistics
from deepum.rematerialise.pytorch.compiler import CompilerNotice
from deepum.rematerialise.pytorch.limits import Limit, StrictLimit
from deepum.rematerialise.pytorch.memory import check_version, existing_tensors
from deepum.rematerialise.pytorch.mode import Mode
from deepum.rematerialise.pytorch.tracker import Tracker
from deepum.sizes import parse_size

_SMALLEST = 1 / 10_000  # of the budget: contents below are not worth evicting
_LEAST = 4096


@dataclass(frozen=True)
class RematStatistics:
    """Of a session so far. Bytes are those of tensors; seconds are as measured when each operator
    was first called.
    """

    budget_bytes: int
    used_bytes: int
    peak_bytes: int
    operators: int
    evictions: int
    evicted_bytes: int
    recomputed: int
    recomputed_seconds: float
    computed_seconds: float  # by the program, without what was computed again
    banished: int
    late: int  # operators that made more than was foreseen
    choice: ChoiceStatistics | None = None  # of the budget "auto"


def _forked() -> None:
    """In a child process. Registered once: what a process registers stays for good."""
    active = Remat._active
    if active is not None and active._tracker is not None:
        active._tracker.forked()


os.register_at_fork(after_in_child=_forked)


class Remat:
    """In this block tensors on one device take no more than a budget: what can be computed again is
    evicted, and computed again when it is used. Numbers are bit for bit those without it.

    budget: bytes, or a size such as "8GiB"; "auto": under unified memory, what is cheaper for a
    tensor, to compute it again or to move it, by trial over the program's steps. heuristic: what
    leaves first (docs/rematerialise.md). device: of PyTorch; default: the current GPU, else the
    CPU. smallest: bytes of the smallest tensor that is evicted; default: a ten-thousandth of the
    budget. sampling: look at the square root of all candidates. verify: compare what is computed
    again with what was evicted, by checksums, which takes time.

    Raises UsageError for what cannot be used, and in the block RematOutOfMemoryError (PyTorch's
    torch.OutOfMemoryError) where the budget is too small for one operator.
    """

    _active: Remat | None = None

    def __init__(
        self,
        budget: int | str,
        *,
        heuristic: str = DEFAULT.name,
        device: str | torch.device | None = None,
        smallest: int | str | None = None,
        sampling: bool = True,
        verify: bool = False,
    ) -> None:
        check_version()
        self._device = _device_of(device)
        self._verify = verify
        self._automatic = Automatic(self._device) if budget == "auto" else None
        self._limit: Limit
        if self._automatic is not None:
            if heuristic != DEFAULT.name or smallest is not None or not sampling:
                raise UsageError(
                    "deepum.remat: budget 'auto': chooses what leaves itself; leave out heuristic, "
                    "smallest and sampling, or give a size"
                )
            self._limit = self._automatic.limit
        else:
            size = _bytes_of("budget", budget)
            least = max(_LEAST, int(size * _SMALLEST))
            if smallest is not None:
                least = _bytes_of("smallest", smallest)
            self._limit = StrictLimit(size, named(heuristic), least, sampling)
        self._tracker: Tracker | None = None
        self._steps: Boundaries | None = None  # of a program with a strict limit
        self._entered = threading.local()  # `mode`: the calling thread's
        self._accessors: Accessors | None = None
        self._compiler = CompilerNotice()

    def __enter__(self) -> Remat:
        if Remat._active is not None:
            raise UsageError("deepum.remat: is active already; blocks of it cannot be nested")
        tracker = self._tracker = Tracker(self._device, self._limit, verify=self._verify)
        if self._automatic is not None:
            self._automatic.begin(tracker)
        else:
            self._steps = Boundaries(tracker.engine.begin_step)
            self._steps.install()
            tracker.resume(existing_tensors())
        self._accessors = Accessors(tracker.expose)
        self._accessors.install()
        self._compiler.install()
        Remat._active = self
        self.enter_thread()
        return self

    def __exit__(self, *reason: object) -> None:
        self.leave_thread()
        Remat._active = None
        self._compiler.remove()
        if self._automatic is not None:
            self._automatic.end()
        if self._steps is not None:
            self._steps.remove()
        if self._accessors is not None:
            self._accessors.remove()
        if self._tracker is not None:
            self._tracker.restore()

    def enter_thread(self) -> None:
        """The calling thread's operators belong to the block as well."""
        assert self._tracker is not None
        self._entered.mode = Mode(self._tracker)
        self._entered.mode.__enter__()

    def leave_thread(self) -> None:
        """They do not any more."""
        self._entered.mode.__exit__(None, None, None)

    def statistics(self) -> RematStatistics:
        """Since the block was entered."""
        if self._tracker is None:
            raise UsageError("deepum.remat: has no statistics before its block is entered")
        engine = self._tracker.engine
        counters = engine.counters
        return RematStatistics(
            budget_bytes=self._limit.budget,
            used_bytes=engine.used,
            peak_bytes=counters.peak_bytes,
            operators=self._tracker.calls,
            evictions=counters.evictions,
            evicted_bytes=counters.evicted_bytes,
            recomputed=counters.recomputations,
            recomputed_seconds=counters.recomputed_ns / 1e9,
            computed_seconds=(engine.clock - counters.recomputed_ns) / 1e9,
            banished=counters.banished,
            late=self._limit.late,
            choice=self._automatic.statistics() if self._automatic is not None else None,
        )


def _bytes_of(name: str, given: int | str) -> int:
    if isinstance(given, str):
        try:
            given = parse_size(given)
        except ValueError as error:
            raise UsageError(f"deepum.remat: {name}: {error}") from None
    if given <= 0:
        raise UsageError(f"deepum.remat: {name} {given}: has to be more than 0 bytes")
    return given


def _device_of(given: str | torch.device | None) -> torch.device:
    try:
        device = torch.device(given) if given is not None else None
    except RuntimeError as error:
        raise UsageError(f"deepum.remat: device '{given}': {error}") from None
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"deepum.remat: device '{device}': only cpu and cuda are known")
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return device
