"""The importer of G10's form: tensors live as the files say, and the program that is made of them
is a sound one.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from small import KERNELS, MIB, TENSORS, random_iteration, training, write

from deepum.core import Allocate, Block, Core, CoreSettings, Execute, events
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.trace import g10, work


def test_tensors_live_from_their_first_use_to_their_last_read(tmp_path: Path) -> None:
    tensors = {0: (MIB, True), 1: (MIB, False), 2: (MIB, False), 3: (MIB, False)}
    kernels = [
        ("a", 1, [0], [1], 0),
        ("b", 1, [1, 2], [3], 0),
        ("c", 1, [1], [0], 0),
        ("d", 1, [], [1], 0),
    ]
    iteration = g10.read(write(tmp_path / "w", tensors, kernels))
    assert iteration.births == {0: 0, 1: 0, 2: 1, 3: 1}
    assert iteration.deaths == {1: 2, 2: 1, 3: 1}, (
        "3 is never read; 1 is written once more after its death"
    )
    assert iteration.alive(1) == [1, 2, 3]
    assert iteration.alive(3) == []
    assert iteration.compute_us == 4


def test_blocks_are_handed_out_and_taken_back_around_the_launches(tmp_path: Path) -> None:
    tensors = {0: (20 * MIB, True), 1: (30 * MIB, False), 2: (12 * MIB, False)}
    iteration = g10.read(
        write(tmp_path / "w", tensors, [("a", 5, [0], [1], 0), ("b", 6, [1], [2], 16 * MIB)])
    )
    made = g10.trace(iteration, 2)
    lines = []
    for event in events(made.events):
        if isinstance(event, Block):
            lines.append(f"{'+' if event.kind == 'block_active' else '-'}{event.bytes // MIB}")
        elif isinstance(event, Execute):
            lines.append("launch")
    step = ["+30", "launch", "+12", "+16", "launch", "-16", "-30", "-12"]
    assert lines == ["+20", "launch", *step, *step]
    assert (
        sum(event.bytes for event in events(made.events) if isinstance(event, Allocate)) == 78 * MIB
    ), "a step's memory serves the next"


def test_work_tells_the_truth_of_each_launch(tmp_path: Path) -> None:
    tensors = {0: (20 * MIB, True), 1: (3 * MIB + 4096, False)}
    iteration = g10.read(
        write(tmp_path / "w", tensors, [("a", 5, [0, 1], [], 8192), ("b", 6.5, [1], [0], 0)])
    )
    made = g10.trace(iteration, 1)
    launches = [event for event in events(made.events) if isinstance(event, Execute)]
    works = list(work.decode(made.work))
    assert [one.sequence for one in works] == [launch.sequence for launch in launches]
    assert [one.ns for one in works[1:]] == [5000, 6500]
    assert [[(a.bytes, a.flags) for a in one.accesses] for one in works[1:]] == [
        # The first touch of 1 has nothing to read.
        [(20 * MIB, work.READ), (3 * MIB + 4096, work.WRITE), (8192, work.WRITE)],
        [(3 * MIB + 4096, work.READ), (20 * MIB, work.WRITE)],
    ]
    assert [bool(one.flags & work.ENDS_STEP) for one in works] == [False, False, True]


def test_launches_are_known_by_name_and_sizes_alone(tmp_path: Path) -> None:
    tensors = dict.fromkeys(range(4), (4 * MIB, True)) | {4: (6 * MIB, True)}
    kernels = [
        ("a", 1, [0], [1], 0),
        ("a", 9, [2], [3], 0),
        ("a", 1, [4], [3], 0),
        ("b", 1, [0], [1], 0),
        ("a", 1, [0], [1], 512),
    ]
    made = g10.trace(g10.read(write(tmp_path / "w", tensors, kernels)), 1)
    hashes = [event.execution_hash for event in events(made.events) if isinstance(event, Execute)][
        5:
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4


@pytest.mark.parametrize("seed", range(12))
def test_the_core_finds_nothing_wrong_with_it(tmp_path: Path, seed: int) -> None:
    made = g10.trace(random_iteration(tmp_path / "w", seed), 3, synchronise=seed % 2 == 0)
    core = Core(CoreSettings.default(invalidation=1))
    core.process(made.events)
    counts = core.statistics()
    assert (counts.malformed_events, counts.block_mismatches, counts.events_lost) == (0, 0, 0)
    outcome = replay(made, machine("a100-40gb-g10"), BY_NAME["deepum"].settings(1024), 64 * MIB)
    assert outcome.counters["discarded_uses"] == 0
    assert outcome.counters["kernels"] == counts.launches


def test_with_enough_memory_an_iteration_takes_its_kernels_time(tmp_path: Path) -> None:
    iteration = training(tmp_path / "w")
    outcome = replay(
        g10.trace(iteration, 4), machine("a100-40gb-g10"), BY_NAME["unlimited"].settings(1024)
    )
    ends = [mark.ns for mark in outcome.marks]
    assert [b - a for a, b in itertools.pairwise(ends)] == pytest.approx(
        [iteration.compute_us * 1e3] * 3, rel=1e-9
    )
    assert outcome.counters["bytes_h2d"] == outcome.counters["bytes_d2h"] == 0


@pytest.mark.parametrize(
    ("tensors", "kernels", "cause"),
    [
        ("id,size\n", KERNELS, "columns"),
        (TENSORS + "0,12\n", KERNELS + "0,a,1,,0,0\n", "cut off"),
        (TENSORS + "0,many,1\n", KERNELS + "0,a,1,,0,0\n", "many"),
        (TENSORS + "0,4096,1\n", KERNELS, "no kernels"),
        (TENSORS + "0,4096,1\n", KERNELS + "0,a,1,7,0,0\n", "tensor 7"),
        (TENSORS + "0,0,1\n", KERNELS + "0,a,1,0,,0\n", "tensor 0"),
        (TENSORS + "0,4096,1\n", KERNELS + "0,a,nan,0,,0\n", "nan"),
        (TENSORS + "0,4096,1\n", KERNELS + "0,a,1,0,,-5\n", "-5"),
    ],
)
def test_what_is_wrong_with_files_is_said(
    tmp_path: Path, tensors: str, kernels: str, cause: str
) -> None:
    (tmp_path / "tensors.csv").write_text(tensors)
    (tmp_path / "kernels.csv").write_text(kernels)
    with pytest.raises(ValueError, match=cause):
        g10.read(tmp_path)
