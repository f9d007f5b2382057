"""What is still to be computed for a content that comes back, and what is read for that.

A content that will be read soon should not be evicted for one that may be read at some time, or it
is computed again within the same computation: with every level of a deep network once more.
"""

from __future__ import annotations

from collections import Counter

from deepum.rematerialise.graph import Content, Operation


class Way:
    """Empty while nothing is computed again."""

    def __init__(self) -> None:
        self._ahead: set[Operation] = set()
        self._reads: Counter[Content] = Counter()  # by how many of those

    def __bool__(self) -> bool:
        return bool(self._ahead)

    def __contains__(self, content: object) -> bool:
        """Whether an operation that is still to run reads it."""
        return content in self._reads

    def add(self, operation: Operation) -> None:
        """It is to run, and what computes those of its inputs that are missing."""
        front = [operation]
        while front:
            one = front.pop()
            if one in self._ahead:
                continue
            self._ahead.add(one)
            self._reads.update(one.inputs)
            front += [
                content.producer
                for content in one.inputs
                if not content.is_resident and content.producer is not None
            ]

    def remove(self, operation: Operation) -> None:
        """It ran."""
        if operation not in self._ahead:
            return
        self._ahead.remove(operation)
        for content in operation.inputs:
            self._reads[content] -= 1
            if not self._reads[content]:
                del self._reads[content]

    def lose(self, content: Content) -> None:
        """Its memory went: if it is read, it is to be computed."""
        if content in self._reads and content.producer is not None:
            self.add(content.producer)

    def clear(self) -> None:
        """Nothing is to run any more."""
        self._ahead.clear()
        self._reads.clear()
