"""Which content leaves first: heuristics of dynamic tensor rematerialisation.

Each gives a resident content a score, and the lowest leaves; none that scores NEVER does. Times are
nanoseconds, sizes bytes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice

from deepum.errors import UsageError
from deepum.rematerialise import groups
from deepum.rematerialise.graph import Content

_MOST_ON_PATH = 64  # contents that are looked at
NEVER = math.inf  # score of what is not to be evicted
_MIB = float(1 << 20)
_MS = 1e6


class Heuristic(ABC):
    """name: as it is chosen by. uses_groups: evicted neighbours are to be kept as classes.
    uses_addresses: it asks what is free beside a content.
    """

    name: str
    uses_groups = False
    uses_addresses = False

    @abstractmethod
    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        """Of a content that was used `staleness` ago and has so many free bytes beside it."""


class Dtr(Heuristic):
    """h_DTR: what it costs to get back, evicted neighbours included, by size and staleness."""

    name = "dtr"

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        cost = content.cost + groups.exact_cost_of_neighbours(content)
        return cost / (content.bytes * (staleness + 1.0))


class DtrEq(Heuristic):
    """h_DTR^eq: the same with neighbours as classes of a union-find structure."""

    name = "dtr-eq"
    uses_groups = True

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        cost = content.cost + groups.cost_of_neighbours(content)
        return cost / (content.bytes * (staleness + 1.0))


class Local(Heuristic):
    """h_local: the content's own cost alone."""

    name = "local"

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        return content.cost / (content.bytes * (staleness + 1.0))


class MegEngine(Heuristic):
    """MegEngine's compute^a / (staleness^b * (size + free beside)^c) * d^recomputed, with the
    constants of its source: a, b and c are 1.
    """

    name = "megengine"
    uses_groups = True
    uses_addresses = True

    def __init__(
        self,
        compute_power: float = 1.0,
        staleness_power: float = 1.0,
        size_power: float = 1.0,
        recomputed_base: float = 1.0001,
    ) -> None:
        self._powers = compute_power, staleness_power, size_power
        self._base = recomputed_base

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        compute_power, staleness_power, size_power = self._powers
        cost: float = (content.cost + groups.cost_of_neighbours(content)) / _MS + 1e-3
        size: float = (content.bytes + free_beside) / _MIB
        age: float = staleness / _MS + 1e-3
        weight = math.pow(self._base, content.recomputed)
        return (
            math.pow(cost, compute_power)
            * weight
            / (math.pow(size, size_power) * math.pow(age, staleness_power))
        )


class LeastRecentlyUsed(Heuristic):
    """The one that was used longest ago."""

    name = "lru"

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        return -staleness


class Largest(Heuristic):
    """The largest."""

    name = "size"

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        return -float(content.bytes)


def _missing(content: Content, without: Content | None = None) -> Iterator[Content]:
    """What is missing on the way to a content, each once; `without` is taken to be."""
    seen, front = {content}, [content]
    while front:
        producer = front.pop().producer
        for one in producer.inputs if producer is not None else ():
            if (not one.is_resident or one is without) and one not in seen:
                seen.add(one)
                front.append(one)
                yield one


class Path(Heuristic):
    """The time to compute a content and all that is missing on the way to it, found by search, by
    size and staleness. Unlike h_DTR it leaves out what is computed from the content, which is
    missing whether the content stays or not.
    """

    name = "path"

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        return self.path(content) / (content.bytes * (staleness + 1.0))

    def path(self, content: Content) -> float:
        """Nanoseconds, of _MOST_ON_PATH contents at most."""
        others = islice(_missing(content), _MOST_ON_PATH - 1)
        return content.cost + sum(one.cost for one in others)


class PricedPath(Path):
    """The same; where that is not cheap for a content's size, or the path is longer than
    _MOST_ON_PATH, unified memory moves it for less. price: nanoseconds a byte at most.
    """

    name = "priced-path"

    def __init__(self, price: float = math.inf) -> None:
        self.price = price

    def path(self, content: Content, without: Content | None = None) -> float:
        """Nanoseconds, with `without` taken to be missing; infinite where it is not computed."""
        most = self.price * content.bytes
        total = content.cost
        if total > most:
            return math.inf
        for count, one in enumerate(_missing(content, without), 2):
            total += one.cost
            if total > most or count > _MOST_ON_PATH:
                return math.inf
        return total


HEURISTICS: tuple[Heuristic, ...] = (
    Path(),
    DtrEq(),
    Dtr(),
    Local(),
    MegEngine(),
    LeastRecentlyUsed(),
    Largest(),
)
DEFAULT = HEURISTICS[0]
BY_NAME = {one.name: one for one in HEURISTICS}


def named(name: str) -> Heuristic:
    """The heuristic of a name. Raises UsageError."""
    if name not in BY_NAME:
        raise UsageError(f"heuristic '{name}': is unknown; choose from {', '.join(BY_NAME)}")
    return BY_NAME[name]
