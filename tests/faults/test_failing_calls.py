"""The driver fails the calls that the shim makes on its own account: the program's numbers are
right all the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fault_tools import Training, nothing_left_behind

# What the mover and the markers ask for.
MOVES = "cuMemPrefetchAsync_v2,cuMemPrefetchBatchAsync,cuMemDiscardBatchAsync"
EVENTS = "cuEventCreate,cuEventRecord,cuStreamWaitEvent,cuEventQuery,cuEventSynchronize"
EACH = [*MOVES.split(","), *EVENTS.split(","), "cuStreamCreate"]
ADVICE = ["cuLaunchHostFunc", "cuMemAdvise_v2"]
DUPLICATING = {
    "DEEPUM_ADVICE": "duplicate",
    "DEEPUM_FAULTS": "auto",
    "DEEPUM_FAULT_INTERVAL": "4",
    "DEEPUM_EVICTION_ORDER": "oldest-last-use",
}


def error_codes(cuda_include: Path) -> list[int]:
    """Every CUresult but success."""
    text = (cuda_include / "cuda.h").read_text()
    start = text.index("typedef enum cudaError_enum {")
    return sorted(
        {
            int(code)
            for code in re.findall(
                r"CUDA_ERROR_\w+\s*=\s*(\d+)", text[start : text.index("} CUresult;", start)]
            )
        }
    )


@pytest.mark.parametrize("part", range(4))
def test_every_error_code_of_every_call_is_survived(
    training: Training, daemon: int, runtime_dir: Path, cuda_include: Path, part: int
) -> None:
    codes = error_codes(cuda_include)
    assert len(codes) > 80 and {1, 2, 600, 700, 801, 999} <= set(codes)
    with nothing_left_behind(runtime_dir, daemon):
        for code in codes[part::4]:
            # Where no event can be made, no move is tried that waits for one.
            for calls in (MOVES, EVENTS):
                ran = training.run(5, 2, 5, FAULT_CALL=calls, FAULT_RESULT=code, DEEPUM_LOG=0)
                assert ran.right, (code, ran)
                assert ran.failed() > 0, code


@pytest.mark.parametrize("call", EACH)
@pytest.mark.parametrize("lock_step", [1, 0])
def test_a_call_that_fails_now_and_then_or_from_some_moment_on_is_survived(
    training: Training, daemon: int, call: str, lock_step: int
) -> None:
    failed = 0
    for first, last in ((1, 0), (1, 1), (2, 2), (7, 7), (5, 40), (30, 0)):
        ran = training.run(
            7,
            3,
            5,
            first % 2,
            DEEPUM_SYNC=lock_step,
            FAULT_CALL=call,
            FAULT_FROM=first,
            FAULT_TO=last,
        )
        assert ran.right, (first, last, ran)
        assert ran.err.count("\n") <= 1, ran.err
        failed += ran.failed(call)
    if lock_step:
        # What is complete is asked for outside it, or of streams that have ended.
        assert failed > 0 or call == "cuEventQuery"


@pytest.mark.parametrize("call", ADVICE)
@pytest.mark.parametrize("lock_step", [1, 0])
def test_advice_that_fails_is_survived(
    training: Training, daemon: int, call: str, lock_step: int
) -> None:
    failed = 0
    for code in (1, 201, 700, 801, 999):
        for first, last in ((1, 0), (2, 2), (5, 40)):
            ran = training.run(
                12,
                3,
                5,
                DEEPUM_SYNC=lock_step,
                FAULT_CALL=call,
                FAULT_RESULT=code,
                FAULT_FROM=first,
                FAULT_TO=last,
                **DUPLICATING,
            )
            assert ran.right, (code, first, last, ran)
            assert ran.err.count("\n") <= 1, ran.err
            failed += ran.failed(call)
    if lock_step:
        assert failed > 0


def test_duplicates_really_happen_without_faults(training: Training, daemon: int) -> None:
    ran = training.run(12, 3, 5, **DUPLICATING)
    assert ran.right
    assert all(ran.calls[call][0] > 10 for call in ADVICE)


def test_discards_really_happen_without_faults(training: Training, daemon: int) -> None:
    ran = training.run(7, 3, 5)
    assert ran.right
    assert ran.calls["cuMemDiscardBatchAsync"][0] > 10
    assert ran.calls["cuMemPrefetchAsync_v2"][0] > 10


@pytest.mark.parametrize("anew", [0, 1])
@pytest.mark.parametrize(
    ("call", "thread"),
    [
        ("cuStreamWaitEvent", "program"),  # its streams do not wait for discards
        ("cuStreamWaitEvent", "mover"),  # the mover's do not wait for the program
        ("cuEventRecord", "program"),  # no markers
        ("cuEventRecord", "mover"),  # no events behind moves, and no markers in the mover's rounds
    ],
)
def test_one_side_alone_that_cannot_wait_is_survived(
    training: Training, daemon: int, call: str, thread: str, anew: int
) -> None:
    ran = training.run(10, 3, 6, anew, FAULT_CALL=call, FAULT_THREAD=thread)
    assert ran.right, ran
    assert ran.failed(call) > 0


def test_memory_that_the_driver_refuses_is_the_programs_own_error(
    training: Training, daemon: int, runtime_dir: Path
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        ran = training.run(4, 1, 5, FAULT_CALL="cuMemAllocManaged", FAULT_RESULT=2, FAULT_FROM=3)
        assert (ran.code, ran.err) == (1, "cuMemAlloc(&made, ARRAY): CUDA_ERROR_OUT_OF_MEMORY\n")
