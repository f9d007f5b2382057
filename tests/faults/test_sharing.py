"""Two programs at once under one daemon: each is right, each has its session, and what one leaves
the other may have.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

from fault_tools import Training, nothing_left_behind, sessions

CARD = 28 << 20


def test_two_with_half_of_the_card_each(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        halves = [
            training.start(60, 2, 5, 0, 64, DEEPUM_SIM_MEMORY=CARD // 2, FAULT_TOLD="")
            for _ in range(2)
        ]
        assert all(training.finish(process).right for process in halves)
        reports = sessions(stats)
    assert sorted(session["pid"] for session in reports) == sorted(
        process.pid for process in halves
    )
    assert reports[0]["core"] == reports[1]["core"], "neither disturbed the other"
    assert reports[0]["core"]["commands"] > 100
    for process in halves:
        simulated = json.loads((stats / f"sim-{process.pid}.json").read_text())
        assert simulated["peak_resident_bytes"] <= CARD // 2


def test_two_budgets_on_cards_that_have_more(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    """Here the shim has to keep the budget, not the card."""
    budget = 64 << 20  # the least that there is
    with nothing_left_behind(runtime_dir, daemon):
        halves = [
            training.start(
                40,
                2,
                14,
                0,
                64,
                DEEPUM_SIM_MEMORY=256 << 20,
                DEEPUM_GPU_MEMORY=budget,
                FAULT_TOLD="",
            )
            for _ in range(2)
        ]
        assert all(training.finish(process).right for process in halves)
        reports = sessions(stats)
    assert len(reports) == 2
    assert all(
        session["core"]["peak_resident_bytes"] <= budget + (8 << 20) for session in reports
    ), "a launch needs 8 MiB"


def test_one_that_is_killed_does_not_disturb_the_other(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        kept = training.start(400, 3, 5, 1, 64, FAULT_TOLD="")
        for step in range(40, 400, 40):
            assert (
                training.run(100, 2, 5, 0, 64, FAULT_KILL=step, FAULT_TOLD="").code
                == -signal.SIGKILL
            )
        ran = training.finish(kept)
        assert ran.right and ran.err == ""
        by_pid = {session["pid"]: session for session in sessions(stats)}
    assert by_pid[kept.pid]["core"]["launches"] == 400 * 10 + 10


def test_of_one_limit_for_both_the_second_gets_what_the_first_leaves(
    training: Training, daemon: int, runtime_dir: Path
) -> None:
    """Of 60 MiB, 5 layers take 40. A program that was killed leaves all of it."""
    limited = replace(
        training,
        environment=training.environment | {"DEEPUM_MANAGED_LIMIT": "60MiB", "FAULT_TOLD": ""},
    )
    with nothing_left_behind(runtime_dir, daemon):
        first = limited.start(10**6, 2, 5, 0, 64)
        assert first.stdout is not None and first.stdout.readline() == "round 1\n"
        second = limited.run(4, 2, 5)
        assert (second.code, second.err) == (
            1,
            "deepum: warning: out of memory: 4 MiB beside 20 MiB of this process and 40 MiB "
            "of others on GPU 0 exceed the limit of 60 MiB "
            "for all; raise --managed-limit (DEEPUM_MANAGED_LIMIT), or ask for less\n"
            "cuMemAlloc(&made, ARRAY): CUDA_ERROR_OUT_OF_MEMORY\n",
        )
        assert limited.run(4, 2, 2).right
        os.kill(first.pid, signal.SIGKILL)
        limited.finish(first)
        assert limited.run(4, 2, 7).right


def test_the_launcher_sums_both(
    deepum: Callable[..., CompletedProcess[str]],
    compile_program: Callable[..., Path],
    tmp_path: Path,
) -> None:
    program, kernels = (
        compile_program("fault_training.c", link_cuda=True),
        compile_program("fault_kernels.c", shared=True),
    )
    script = f"for i in 1 2; do {program} {kernels} 20 2 14 0 64 & done; wait"
    ran = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "64MiB",
        "--stats",
        "s.json",
        "--",
        "sh",
        "-c",
        script,
    )
    assert ran.returncode == 0 and ran.stdout.count("all 14 layers are right\n") == 2, ran
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert len(statistics["processes"]) == 2
    assert statistics["kernels"] == 2 * 20 * 28
    assert statistics["warnings"] == []
