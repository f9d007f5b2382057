"""What a plan was made of: read as it was written, and refused where it makes no sense."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_problems import random_problem

from deepum.planners.outline import Outline, Provenance
from deepum.planners.recorded import Run

MADE = Provenance("belady", 0.25, bound_ns=100.0, workload="w", machine="m")


def outline(seed: int) -> Outline:
    problem = random_problem(seed)
    plan = problem.belady()
    assert plan is not None
    names = [[Run(7, 8 * item, 8)] for item in range(len(problem.iteration.items))]
    return Outline(MADE, problem.iteration, problem.link, plan, names)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_read_as_it_was_written_and_takes_as_long(seed: int) -> None:
    made = outline(seed)
    again = Outline.decode(made.encode())
    assert replace(again, plan=made.plan) == made and (again.plan == made.plan).all()
    assert again.problem().replay(again.plan).ns == made.problem().replay(made.plan).ns


def changed(key: str, value: Any) -> bytes:
    fields = json.loads(zlib.decompress(outline(1).encode()))
    return zlib.compress(json.dumps(fields | {key: value}).encode())


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "cut off"),
        (b"no zlib", "makes no sense"),
        (outline(1).encode()[:-3], "cut off"),
        (zlib.compress(b"[" * 100_000), "makes no sense"),
        (zlib.compress(b"[]"), "another version"),
        (changed("version", 2), "another version"),
        (changed("contents", [{"events": 3, "items": []}]), "makes no sense"),
        (changed("link", {"memory_bytes": 3}), "makes no sense"),
        (changed("evicted", "*"), "makes no sense"),
        (changed("made", {"by": "me"}), "makes no sense"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_cause(data: bytes, cause: str) -> None:
    with pytest.raises(ValueError, match=f"its outline.*{cause}"):
        Outline.decode(data)


def test_a_plan_of_another_problem_or_without_room_is_refused() -> None:
    made = outline(1)
    with pytest.raises(ValueError, match="gaps, and its items"):
        replace(made, plan=np.zeros(3, dtype=np.uint8)).problem()
    with pytest.raises(ValueError, match="more memory than it was made for"):
        replace(made, link=replace(made.link, memory_bytes=1)).problem()
    with pytest.raises(ValueError, match="times of launches that are none"):
        Outline.decode(changed("launch_ns", [float("nan")] * 6)).problem()
    with pytest.raises(ValueError, match="makes no sense"):
        replace(made, link=replace(made.link, memory_bytes=1 << 80)).problem()
    with pytest.raises(ValueError, match="of no launch"):
        Outline.decode(changed("launch_ns", [1.0])).problem()


def test_damaged_ones_are_refused_or_replayed() -> None:
    chance = random.Random(5)
    text = zlib.decompress(outline(2).encode())
    refused = 0
    for _ in range(400):
        damaged = bytearray(text)
        damaged[chance.randrange(len(text))] = chance.choice(b'0123456789,:[]{}"-.ex')
        try:
            assert Outline.decode(zlib.compress(bytes(damaged))).problem() is not None
        except ValueError:
            refused += 1
    assert 0 < refused < 400
