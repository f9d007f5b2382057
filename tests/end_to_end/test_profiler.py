"""What a profiler sees of the mover, by a library that NVTX loads as it loads a profiler's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Range:
    """An operation of the mover: `payload` in bytes."""

    domain: str
    thread: str
    category: str
    payload: int
    message: str

    @property
    def kind(self) -> str:
        return self.message.split(",")[0]


@pytest.fixture(scope="session")
def recorder(compile_program: Callable[..., Path]) -> Path:
    """The library, which writes what ranges it is told of to the file RANGES."""
    return compile_program("nvtx_recorder.c", shared=True)


def of(path: Path) -> list[Range]:
    fields = [line.split("\t") for line in path.read_text().splitlines()]
    return [
        Range(domain, thread, category, int(payload), message)
        for domain, thread, category, payload, message in fields
    ]


def test_the_movers_operations_are_ranges_with_their_bytes_and_why(
    run_sweep: Callable[..., Any], recorder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ranges"
    seen = run_sweep(env={"NVTX_INJECTION64_PATH": str(recorder), "RANGES": str(path)})
    ranges = of(path)
    assert {(each.domain, each.thread) for each in ranges} == {("deepum", "deepum-mover")}
    ways = {"prefetch": "to the GPU", "evict": "to the host", "populate": "no copy"}
    assert {each.kind: each.category for each in ranges} == ways
    moved = {kind: sum(each.payload for each in ranges if each.kind == kind) for kind in ways}
    counters = seen.statistics["processes"][0]["session"]["core"]
    assert moved["prefetch"] + moved["populate"] == (
        counters["bytes_prefetched"] + counters["bytes_prefetched_again"]
    )
    assert moved["evict"] == counters["bytes_evicted"] > 0
    assert all(" decided at event " in each.message for each in ranges)


def test_without_a_profiler_nothing_is_loaded_and_the_program_does_the_same(
    run_sweep: Callable[..., Any], recorder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ranges"
    alone = run_sweep(env={"NVTX_INJECTION64_PATH": "", "RANGES": str(path)})
    assert not path.exists()
    watched = run_sweep(env={"NVTX_INJECTION64_PATH": str(recorder), "RANGES": str(path)})
    assert path.exists()
    assert watched.result.stdout == alone.result.stdout


@pytest.mark.parametrize("refuses", [False, True], ids=["no such file", "it takes nothing"])
def test_a_profiler_that_cannot_be_had_is_one_line(
    run_sweep: Callable[..., Any], recorder: Path, tmp_path: Path, refuses: bool
) -> None:
    path = recorder if refuses else tmp_path / "none.so"
    env = {"NVTX_INJECTION64_PATH": str(path), "RANGES": str(tmp_path / "ranges")}
    result: subprocess.CompletedProcess[str] = run_sweep(
        rounds=2, env=env | ({"NVTX_REFUSES": "1"} if refuses else {})
    ).result
    messages = [line for line in result.stderr.splitlines() if "NVTX" in line]
    assert messages == [
        f"deepum: warning: NVTX_INJECTION64_PATH={path}: cannot be loaded, or takes no ranges; "
        "the mover's operations are not shown"
    ]
