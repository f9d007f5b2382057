"""Contents that may be evicted, so that a few of them can be drawn at random."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from deepum.rematerialise.graph import Content


class Evictable:
    """A set with draws. seed: of the generator that draws."""

    def __init__(self, seed: int = 0) -> None:
        self._contents: list[Content] = []
        self._seed = seed
        self._random = random.Random(seed)
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._contents)

    def add(self, content: Content) -> None:
        """Nothing if it is in."""
        if content.position < 0:
            content.position = len(self._contents)
            self._contents.append(content)
            self.bytes += content.bytes

    def discard(self, content: Content) -> None:
        """Nothing if it is not in."""
        place = content.position
        if place < 0:
            return
        last = self._contents.pop()
        if last is not content:
            self._contents[place] = last
            last.position = place
        content.position = -1
        self.bytes -= content.bytes

    def all(self) -> Sequence[Content]:
        """In no order."""
        return self._contents

    def restart(self) -> None:
        """What is drawn from now on is what was drawn at first."""
        self._random.seed(self._seed)

    def sample(self) -> Sequence[Content]:
        """The square root of their number, drawn with replacement."""
        count = len(self._contents)
        if count <= 1:
            return self._contents
        drawn = self._random.choices(self._contents, k=math.isqrt(count - 1) + 1)
        return list(dict.fromkeys(drawn))
