"""A caching allocator as PyTorch's.

Segments come from the driver, blocks out of them by best fit; they are split, merged, and handed
out again on the stream that they belong to. What other streams use is handed out again when events
say that they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proof_order import Clock

MIB = 1 << 20
ROUNDING = 512  # kMinBlockSize
# kSmallSize: blocks up to that come from a pool of their own, so that many share a UM block.
SMALL = 1 * MIB
SMALL_SEGMENT = 2 * MIB  # kSmallBuffer
LARGE_SEGMENT = 20 * MIB  # kLargeBuffer, for blocks below 10 MiB
LEAST_EXACT = 10 * MIB  # kMinLargeAlloc
ROUND_LARGE = 2 * MIB  # kRoundLarge


@dataclass(slots=True, eq=False)
class Piece:
    """A part of a segment: handed out, waiting for events, or free."""

    segment: int
    stream: int
    device: int
    small: bool
    offset: int
    size: int
    free: bool = True
    before: Piece | None = None
    after: Piece | None = None


@dataclass(slots=True)
class Waiting:
    """A block that was taken back while other streams may still use it."""

    piece: Piece
    events: list[tuple[int, Clock]] = field(default_factory=list)  # its number, what is before it


class CachingAllocator:
    """`new_segment(device, bytes)` gets memory from the driver and gives its number,
    `end_segment(number)` gives it back.
    """

    def __init__(
        self,
        new_segment: Callable[[int, int], int],
        end_segment: Callable[[int], None],
        back: bool = False,
    ) -> None:
        """back: a block is the end of the free one that it is taken from, not its beginning."""
        self._back = back
        self._new_segment = new_segment
        self._end_segment = end_segment
        self._free: dict[tuple[int, bool], list[Piece]] = {}  # by (stream, small)
        self.waiting: list[Waiting] = []

    def take(self, stream: int, device: int, size: int, exact: bool) -> Piece:
        """A block of at least `size` bytes for the stream. exact: a new segment is no larger than
        needed.
        """
        size = -(-size // ROUNDING) * ROUNDING
        small = size <= SMALL
        pool = self._free.setdefault((stream, small), [])
        piece = min(
            (p for p in pool if p.size >= size),
            key=lambda p: (p.size, p.segment, p.offset),
            default=None,
        )
        if piece is None:
            bytes_ = (
                -(-size // ROUND_LARGE) * ROUND_LARGE
                if exact or size >= LEAST_EXACT
                else LARGE_SEGMENT
            )
            bytes_ = SMALL_SEGMENT if small else bytes_
            piece = Piece(self._new_segment(device, bytes_), stream, device, small, 0, bytes_)
        else:
            pool.remove(piece)
        piece.free = False
        rest = piece.size - size
        if rest >= ROUNDING if small else rest > SMALL:
            first = rest if self._back else size
            left = Piece(
                piece.segment,
                stream,
                device,
                small,
                piece.offset + first,
                piece.size - first,
                False,
                piece,
                piece.after,
            )
            piece.size = first
            if piece.after is not None:
                piece.after.before = left
            piece.after = left
            piece, left = (left, piece) if self._back else (piece, left)
            left.free = True
            pool.append(left)
        return piece

    def give_back(self, piece: Piece) -> None:
        """The block may be handed out again, merged with its free neighbours."""
        pool = self._free.setdefault((piece.stream, piece.small), [])
        piece.free = True
        before, after = piece.before, piece.after
        if after is not None and after.free:
            pool.remove(after)
            piece.size += after.size
            piece.after = after.after
            if piece.after is not None:
                piece.after.before = piece
        if before is not None and before.free:
            before.size += piece.size
            before.after = piece.after
            if piece.after is not None:
                piece.after.before = before
        else:
            pool.append(piece)

    def empty(self, device: int | None = None) -> None:
        """Gives whole free segments back to the driver (torch.cuda.empty_cache), of one device or
        of all.
        """
        for pool in self._free.values():
            for piece in [
                p
                for p in pool
                if p.before is None and p.after is None and device in (None, p.device)
            ]:
                pool.remove(piece)
                self._end_segment(piece.segment)
