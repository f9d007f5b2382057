"""Names of PyTorch's blocks that are equal from step to step: size and the lowest free ordinal."""

from __future__ import annotations

import bisect

from deepum.core import UM_BLOCK_BYTES
from reference.memory.um_block import Name

MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """splitmix64."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def name_hash(name: Name) -> int:
    return mix(mix(name[1] ^ 0x50794254726F6368) + name[2] & MASK)  # type: ignore[misc]


class TorchBlockNames:
    def __init__(self) -> None:
        self.free: dict[int, list[int]] = {}  # ordinals, by size and device
        self.next: dict[int, int] = {}

    def take(self, device: int, size: int) -> Name:
        key = -(-size // UM_BLOCK_BYTES) << 8 | device
        free = self.free.setdefault(key, [])
        if free:
            return ("torch", key, free.pop(0))
        ordinal = self.next.get(key, 0)
        self.next[key] = ordinal + 1
        return ("torch", key, ordinal)

    def give_back(self, name: Name) -> None:
        _, key, ordinal = name  # type: ignore[misc]
        bisect.insort(self.free[key], ordinal)
