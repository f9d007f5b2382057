"""Regions that are written in parts: when their content before may all be gone."""

from __future__ import annotations

from deepum.trace.work import REGION_BYTES


def whole(start: int, end: int) -> tuple[int, int]:
    """What of these bytes is whole regions: first byte, and the one behind the last; equal, or the
    wrong way round, if there is none.
    """
    return -(-start // REGION_BYTES) * REGION_BYTES, end // REGION_BYTES * REGION_BYTES


class Parts:
    """Bytes written of each region since somebody used all of it."""

    def __init__(self) -> None:
        self._written: dict[int, int] = {}

    def used(self, start: int, end: int) -> None:
        """Whole regions, read or written: what was written in parts before is part of their
        content.
        """
        first, last = start // REGION_BYTES, end // REGION_BYTES
        if last - first < len(self._written):
            for region in range(first, last):
                self._written.pop(region, None)
        else:
            for region in [region for region in self._written if first <= region < last]:
                del self._written[region]

    def written(self, start: int, count: int) -> list[tuple[int, int]]:
        """So many bytes, somewhere in a region's length from `start` on: rows of a gather are told
        no nearer. Returns the regions in which nothing may be left of what was there: first byte,
        and the one behind the last.
        """
        gone = []
        for region in {start // REGION_BYTES, (start + REGION_BYTES - 1) // REGION_BYTES}:
            written = self._written[region] = self._written.get(region, 0) + count
            if written >= REGION_BYTES:
                gone.append((region * REGION_BYTES, (region + 1) * REGION_BYTES))
        return gone
