"""What a plan was made of, as bytes beside its moves (`deepum.core.Plan.outline`): the iteration,
the device, which gaps leave, and how that was found. It is replayed to be drawn.
"""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deepum.planners.iteration import Event, Item, Iteration, Link
from deepum.planners.problem import Plan, Problem
from deepum.planners.recorded import Run

_VERSION = 1
_MOST_BYTES = 1 << 28  # of text
_READS, _WRITES, _DIES = 1, 2, 4
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Provenance:
    """How a plan was found: the planner, and the seconds that it took. bound_ns: the lower bound of
    unified memory for an iteration, linear_bound_ns: that of all plans, by linear programming; None
    where they are not known. workload, machine: their names, where it was planned for them.
    """

    planner: str
    seconds: float
    bound_ns: float | None = None
    linear_bound_ns: float | None = None
    workload: str | None = None
    machine: str | None = None


@dataclass(frozen=True)
class Outline:
    """plan: by gap of the problem that iteration and link are. names: of each item's UM blocks, at
    the first launch that uses it.
    """

    made: Provenance
    iteration: Iteration
    link: Link
    plan: Plan
    names: Sequence[Sequence[Run]]

    def encode(self) -> bytes:
        """As `decode` reads it."""
        items = zip(self.iteration.items, self.names, strict=True)
        document = {
            "version": _VERSION,
            "made": asdict(self.made),
            "link": asdict(self.link),
            "launch_ns": self.iteration.launch_ns,
            "contents": [
                {
                    "events": [_flags(event) for event in events],
                    "items": [
                        (item.bytes, item.tensor_bytes, [(r.name, r.first, r.count) for r in runs])
                        for item, runs in alike
                    ],
                }
                for events, alike in itertools.groupby(items, key=lambda one: one[0].events)
            ],
            "gaps": len(self.plan),
            "evicted": base64.b64encode(np.packbits(self.plan).tobytes()).decode(),
        }
        return zlib.compress(json.dumps(document, separators=(",", ":")).encode())

    @classmethod
    def decode(cls, data: bytes) -> Outline:
        """Raises ValueError where the bytes are no outline of this version, or make no sense."""
        document = _text(data)
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            raise ValueError("its outline is of another version")
        try:
            return cls._read(document)
        except _MALFORMED as error:
            raise ValueError(f"its outline makes no sense: {error}") from None

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Outline:
        items: list[Item] = []
        names: list[list[Run]] = []
        for content in document["contents"]:
            events = tuple(_event(launch, flags) for launch, flags in content["events"])
            for size, tensor_bytes, runs in content["items"]:
                items.append(Item(int(size), events, int(tensor_bytes)))
                names.append([Run(int(name), int(at), int(count)) for name, at, count in runs])
        iteration = Iteration(tuple(float(ns) for ns in document["launch_ns"]), tuple(items))
        bits = np.frombuffer(base64.b64decode(document["evicted"], validate=True), dtype=np.uint8)
        plan = np.unpackbits(bits, count=int(document["gaps"]))
        return cls(Provenance(**document["made"]), iteration, Link(**document["link"]), plan, names)

    def problem(self) -> Problem:
        """What was planned. Raises ValueError where it is none, the plan is of another one, or can
        never run.
        """
        times = np.array(self.iteration.launch_ns)
        if not (np.isfinite(times).all() and (times >= 0).all()):
            raise ValueError("its outline has times of launches that are none")
        try:
            made = Problem(self.iteration, self.link)
        except (OverflowError, TypeError) as error:
            raise ValueError(f"its outline makes no sense: {error}") from None
        if len(made) != len(self.plan):
            raise ValueError(f"its outline has {len(self.plan)} gaps, and its items {len(made)}")
        if not np.isfinite(made.replay(self.plan).ns):
            raise ValueError("it needs more memory than it was made for")
        return made


def _flags(event: Event) -> tuple[int, int]:
    return (
        event.launch,
        _READS * event.reads | _WRITES * event.writes | _DIES * event.dies,
    )


def _event(launch: Any, flags: Any) -> Event:
    return Event(int(launch), bool(flags & _READS), bool(flags & _WRITES), bool(flags & _DIES))


def _text(data: bytes) -> Any:
    """Raises ValueError."""
    reading = zlib.decompressobj()
    try:
        text = reading.decompress(data, _MOST_BYTES)
        if not reading.eof:
            raise ValueError("its outline is cut off, or too long")
        return json.loads(text)
    except zlib.error as error:
        raise ValueError(f"its outline makes no sense: {error}") from None
    except RecursionError:
        raise ValueError("its outline makes no sense: it is nested too deeply") from None
