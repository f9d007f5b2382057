"""What a steady iteration allocates, for a static arena."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from small import training

from deepum.arena import Problem
from deepum.core import Block, events
from deepum.errors import UsageError
from deepum.simulate.lifetimes import lifetimes, lifetimes_of
from deepum.simulate.workload import Workload, load
from deepum.trace import Trace

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


def _block(active: bool, offset: int, size: int) -> Block:
    return Block(
        kind="block_active" if active else "block_inactive",
        flags=0,
        device=0,
        sequence=0,
        slot=0,
        generation=0,
        offset=offset,
        bytes=size,
        allocated_bytes=0,
        reserved_bytes=4096,
    )


def test_lifetimes_of_a_period_are_cut_where_blocks_live_across() -> None:
    blocks = [
        _block(True, 0, 512),  # a weight
        _block(True, 512, 1024),  # a gradient, of the iteration before
        _block(True, 4096, 2048),  # the period begins: an activation
        _block(False, 512, 1024),
        _block(False, 4096, 2048),
        _block(True, 2048, 1024),  # the next gradient
    ]
    found = lifetimes_of(blocks, 2, 6)
    assert [(one.begin, one.end, one.size) for one in found.buffers] == [
        (0, 4, 512 + 1024),
        (0, 2, 2048),
    ]
    assert found.reserved_bytes == 4096


def test_an_iteration_of_a_workload_needs_less_than_the_caching_allocator(
    deepum: Deepum, tmp_path: Path
) -> None:
    training(tmp_path / "training")
    result = deepum("arena", "training", "--json", "out.json")
    assert result.returncode == 0, result.stderr
    kept = json.loads((tmp_path / "out.json").read_text())
    best = kept["found"][-1]
    assert kept["input"] == "training" and kept["buffers"] > 20
    assert kept["load_bytes"] <= best["bytes"] < kept["reserved_bytes"]


def test_what_lives_at_once_is_what_pytorch_has_handed_out_at_most(tmp_path: Path) -> None:
    training(tmp_path / "training")
    loaded = load(str(tmp_path / "training"), None, False)
    blocks = [event for event in events(loaded.trace.events) if isinstance(event, Block)]
    most = max(block.allocated_bytes for block in blocks)
    assert Problem(lifetimes(loaded, loaded.machine).buffers).load == most


def test_a_trace_without_blocks_or_steps_is_refused(tmp_path: Path) -> None:
    training(tmp_path / "training")
    loaded = load(str(tmp_path / "training"), 2, False)
    with pytest.raises(UsageError, match="takes 3 steps; record at least four"):
        lifetimes(loaded, loaded.machine)
    with pytest.raises(UsageError, match="tells nothing of PyTorch's blocks"):
        lifetimes(Workload("empty", Trace("empty", b""), loaded.machine), loaded.machine)
