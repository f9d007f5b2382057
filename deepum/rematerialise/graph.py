"""What rematerialisation knows of a program: contents, and the operations that compute them.

An operation keeps what it reads alive, as a node, and a content the operation that computes it; so
that the path to a content is there as long as somebody can ask for it, and goes when nobody can
("fake deletion" of the DTR paper: the memory of a tensor that the program let go is free at once,
its compute path stays).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

_FEW = 8  # readers, below which those that are gone need not be forgotten


class Readers:
    """Operations that read a content and whose results somebody can still ask for, in the order in
    which they were recorded, so that runs are alike.
    """

    __slots__ = ("_most", "_references")

    def __init__(self) -> None:
        self._references: list[weakref.ref[Operation]] = []
        self._most = _FEW  # references, of which so many may be of operations that are gone

    def __iter__(self) -> Iterator[Operation]:
        for reference in self._references:
            operation = reference()
            if operation is not None:
                yield operation

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    @property
    def kept(self) -> int:
        """References, those to operations that are gone among them."""
        return len(self._references)

    def add(self, operation: Operation) -> None:
        """Another one."""
        if len(self._references) >= self._most:
            self._references = [one for one in self._references if one() is not None]
            self._most = max(_FEW, 2 * len(self._references))
        self._references.append(weakref.ref(operation))


class Content:
    """What one piece of memory holds between two writes: one version of one tensor's storage.

    producer: the operation that computes it; None: it cannot be computed, so that it is never
    evicted (a source: a parameter, an input, what has been changed in place and cannot be redone).
    is_held: the program can still ask for it. A content that it let go is computed again only as an
    input of others.
    """

    __slots__ = (
        "__weakref__",
        "bytes",
        "depth",
        "group",
        "handle",
        "is_held",
        "is_resident",
        "last_use",
        "locks",
        "position",
        "producer",
        "readers",
        "recomputed",
        "why",
    )

    def __init__(self, size: int, handle: Any = None, why: str = "") -> None:
        self.bytes = size
        self.handle = handle  # the backend's
        self.why = why  # it is pinned, for people
        self.producer: Operation | None = None
        self.readers = Readers()
        self.depth = 0  # operations from the sources to it
        self.group: Any = None  # of evicted neighbours (groups.py)
        self.is_held = True
        self.is_resident = True
        self.last_use = 0.0
        self.locks = 0
        self.position = -1  # among those that may be evicted; -1: it may not
        self.recomputed = 0  # times

    @property
    def cost(self) -> float:
        """Nanoseconds that the operation which computes it takes; 0 of a source."""
        return self.producer.cost if self.producer is not None else 0.0

    def is_evicted(self) -> bool:
        """Whether it is gone and can be computed."""
        return not self.is_resident and self.producer is not None


class Operation:
    """One computation: inputs are read, outputs are made.

    cost: nanoseconds. overwrites: the input that becomes the output in place; to redo that is to
    change a private copy of it. payload: what the backend needs to run it. held: what the backend
    keeps alive for it, such as the memory of sources. room: bytes that running it takes.
    """

    __slots__ = (
        "__weakref__",
        "cost",
        "held",
        "inputs",
        "outputs",
        "overwrites",
        "payload",
        "room",
    )

    def __init__(
        self,
        inputs: tuple[Content, ...],
        outputs: tuple[Content, ...],
        cost: float,
        payload: Any = None,
        overwrites: Content | None = None,
        room: int | None = None,
    ) -> None:
        self.inputs = inputs
        self.cost = cost
        self.payload = payload
        self.overwrites = overwrites
        self.held: list[Any] = []
        self.room = sum(one.bytes for one in outputs) if room is None else room
        self.outputs = tuple(weakref.ref(one) for one in outputs)
        depth = 1 + max((one.depth for one in inputs), default=0)
        for one in outputs:
            one.producer = self
            one.depth = depth
        for one in dict.fromkeys(inputs):
            one.readers.add(self)

    def living(self) -> Iterator[Content]:
        """Outputs that somebody can still ask for."""
        for reference in self.outputs:
            content = reference()
            if content is not None and content.producer is self:
                yield content
