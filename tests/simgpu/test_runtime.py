"""libcudart.so.13 alone: C programs compiled against the real headers and linked with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def claims(run_sim: Run, compile_program: Callable[..., Path], sim: Path) -> Run:
    """Compiles and runs a program with the runtime linked; every line it prints has to be a claim
    that holds.
    """

    def run(source: str, *arguments: object, flags: tuple[str, ...] = ()) -> Any:
        libraries = (*flags, f"-L{sim}", "-l:libcudart.so.13", "-l:libcuda.so.1")
        ran = run_sim(compile_program(source, flags=libraries), *arguments)
        lines = ran.out.splitlines()
        assert lines
        assert [line for line in lines if not line.endswith(": yes")] == []
        return ran

    return run


def test_graphs_by_hand_and_by_capture(claims: Run, sim_module: Path) -> None:
    ran = claims("sim_runtime_graph.c", sim_module)
    assert ran.err == ""


@pytest.mark.parametrize("own", [False, True], ids=["legacy", "per-thread"])
def test_stream_0_is_the_one_that_the_program_was_compiled_for(claims: Run, own: bool) -> None:
    claims("sim_runtime_streams.c", flags=("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",) if own else ())


def test_boxes_variables_and_what_is_missing(claims: Run) -> None:
    ran = claims("sim_runtime_memory.c")
    messages = [line for line in ran.err.splitlines() if "is not simulated" in line]
    assert messages.count("deepum-sim: cudaMallocArray is not simulated") == 1
    assert messages.count("deepum-sim: cudaMemcpy3D of an array is not simulated") == 1
