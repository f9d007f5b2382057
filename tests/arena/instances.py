"""Small instances: random ones, and dense ones whose lowest arena is known."""

from __future__ import annotations

import itertools
import random

from deepum.arena import Buffer


def random_buffers(
    seed: int, count: int, most_time: int = 12, aligned: bool = False
) -> list[Buffer]:
    """Lifetimes and sizes at random."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        begin, end = sorted(chance.sample(range(most_time + 1), 2))
        alignment = chance.choice((1, 2, 4, 8)) if aligned else 1
        found.append(Buffer(f"b{number}", begin, end, chance.randint(1, 20), alignment))
    return found


def dense(seed: int, pieces: int, time: int = 1000, size: int = 4096) -> list[Buffer]:
    """A rectangle of time and bytes cut at random: all of it is used at all times, so that no arena
    of `size` bytes has a hole.
    """
    chance = random.Random(seed)
    areas = [(0, time, 0, size)]
    while len(areas) < pieces:
        areas.sort(key=lambda area: (area[1] - area[0]) * (area[3] - area[2]))
        begin, end, low, high = areas.pop()
        at = chance.uniform(0.2, 0.8)
        if chance.random() < 0.5 and end - begin > 4:
            middle = begin + int((end - begin) * at)
            areas += [(begin, middle, low, high), (middle, end, low, high)]
        else:
            middle = low + int((high - low) * at)
            areas += [(begin, end, low, middle), (begin, end, middle, high)]
    chance.shuffle(areas)
    return [
        Buffer(str(number), begin, end, high - low)
        for number, (begin, end, low, high) in enumerate(areas)
    ]


def apart(buffers: list[Buffer], offsets: list[int]) -> bool:
    """Whether no two that live at the same time overlap, pair by pair, and all are aligned."""
    placements = list(zip(buffers, offsets, strict=True))
    return all(at >= 0 and at % one.alignment == 0 for one, at in placements) and not any(
        one.begin < other.end
        and other.begin < one.end
        and at < other_at + other.size
        and other_at < at + one.size
        for (one, at), (other, other_at) in itertools.combinations(placements, 2)
    )


def lowest(buffers: list[Buffer]) -> int:
    """Bytes of the lowest arena: of all orders in which each buffer takes the lowest place."""
    best = sum(one.size + one.alignment for one in buffers)
    for order in itertools.permutations(buffers):
        placed: list[tuple[Buffer, int]] = []
        height = 0
        for one in order:
            beside = [(b, at) for b, at in placed if b.begin < one.end and one.begin < b.end]
            tops = [0, *(at + b.size for b, at in beside)]
            places = sorted(-(-top // one.alignment) * one.alignment for top in tops)
            at = next(
                place
                for place in places
                if all(place + one.size <= low or low + b.size <= place for b, low in beside)
            )
            placed.append((one, at))
            height = max(height, at + one.size)
        best = min(best, height)
    return best
