"""AdamW's launches of the real CUDA build of PyTorch: each names the memory of the tensors that it
works on and no more.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from optimizer_log import UM_BLOCKS, named_in_second_step

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parents[1] / "programs" / "optimizer_steps.py"
# A launch has room for 2240 chunks, so that the first takes 24 weights, the last of them in part,
# and the second takes 7, in a struct that still holds the addresses of the first.
FIRST, SECOND = 24 * UM_BLOCKS, 7 * UM_BLOCKS


@pytest.fixture
def second_step(
    deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> Callable[..., list[int]]:
    """UM blocks that each launch of the second optimizer step names."""

    def second_step(*arguments: str) -> list[int]:
        log = tmp_path / "log"
        result = deepum(
            "run",
            "--device",
            "sim:v100-16gb",
            "--record",
            log,
            "--",
            sys.executable,
            PROGRAM,
            *arguments,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        return named_in_second_step(log)

    return second_step


def test_foreach_launches_name_their_tensors_only(second_step: Callable[..., list[int]]) -> None:
    counts = second_step()
    lists = [named // FIRST for named in counts[::2]]
    assert max(lists) == 3 and min(lists) == 1  # addcdiv reads two and updates one; mul updates one
    assert counts[::2] == [count * FIRST for count in lists]
    assert counts[1::2] == [count * SECOND for count in lists]


def test_fused_launches_name_their_tensors_and_step_counters_only(
    second_step: Callable[..., list[int]],
) -> None:
    # Counters are counted up first; all of them lie in one UM block.
    assert second_step("fused") == [1, 4 * FIRST + 1, 4 * SECOND + 1]
