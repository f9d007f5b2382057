"""What is known of a program's memory while it is lowered: which granules are written, and who used
it last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from proof_caching import Piece


@dataclass(slots=True, eq=False)
class Memory:
    """A memory of the program and what is known of it. `mask`: granules that are written, a bit
    each.
    """

    number: int
    kind: str
    granules: int
    device: int
    home: int  # stream that it was allocated for
    mask: int = 0
    write: tuple[int, int] | None = None
    last: dict[int, int] = field(default_factory=dict)  # by stream: the latest access
    piece: Piece | None = None

    @property
    def on_host(self) -> bool:
        """Pinned or pageable."""
        return self.kind in ("pin", "hst")


@dataclass(slots=True)
class Capture:
    """A graph: what it reads before it writes it, what it writes."""

    number: int
    device: int
    needs: dict[Memory, int] = field(default_factory=dict)
    makes: dict[Memory, int] = field(default_factory=dict)
    # By stream of the capture, since the fork.
    touched: dict[int, set[Memory]] = field(default_factory=dict)
    private: list[Memory] = field(default_factory=list)


def bits(first: int, count: int) -> int:
    """The mask of granules [first, first + count)."""
    return ((1 << count) - 1) << first


def runs(mask: int) -> list[tuple[int, int]]:
    """(first, count) of the runs of ones."""
    found = []
    at = 0
    while mask >> at:
        rest = mask >> at
        skip = (rest & -rest).bit_length() - 1
        at += skip
        rest >>= skip
        count = (~rest & (rest + 1)).bit_length() - 1
        found.append((at, count))
        at += count
    return found
