"""Asks deepum of itself: what it found, a JSON object a line."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable

import torch

import deepum
import deepum.errors

MIB = 1 << 20


def tell(**found: object) -> None:
    print(json.dumps(found), flush=True)


def steps() -> None:
    """Figures of steps that sweep over twice what the card holds."""
    tell(before=deepum.stats())
    tensors = [torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(8)]
    tell(first=deepum.step())
    for _ in range(3):
        for tensor in tensors:
            tensor.add_(1)
        torch.cuda.synchronize()
        figures = deepum.step()
        assert figures is not None
        tell(**dataclasses.asdict(figures))


def budget() -> None:
    """Another budget, and the first one again."""
    tensors = [torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(7)]
    for change in (False, True, True):
        if change:
            found = deepum.stats()
            assert found is not None
            assert deepum.budget("128MiB" if found.capacity_bytes > 128 * MIB else None)
        for _ in range(3):
            for tensor in tensors:
                tensor.add_(1)
            torch.cuda.synchronize()
        time.sleep(0.2)
        found = deepum.stats()
        assert found is not None
        tell(capacity=found.capacity_bytes, resident=found.resident_bytes)


def hints() -> None:
    """One of each kind."""
    tensor = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda")
    small = torch.zeros(16, device="cuda")
    tell(taken=[deepum.hint(tensor, one) for one in ("keep", "none", "cold")])
    tell(taken=[deepum.hint(small, one) for one in ("keep", "none", "cold")])
    for given, what in ((torch.zeros(3), "keep"), (tensor, "hot")):
        try:
            deepum.hint(given, what)
        except deepum.errors.UsageError as error:
            tell(error=str(error))
    tell(last=int(tensor[-1].item()))


CASES: dict[str, Callable[[], None]] = {"steps": steps, "budget": budget, "hints": hints}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
