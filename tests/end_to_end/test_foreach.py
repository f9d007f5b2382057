"""AdamW's launches of the real CUDA build of PyTorch: each names the memory of the tensors that it works on and no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deepum.core import EventLog, Execute, Stream, events

pytestmark = pytest.mark.torch
# 30 weights of 24 MiB: 12 UM blocks and 96 chunks of 65536 elements each. A launch has room for 2240 chunks, so that the first takes 24
# weights, the last of them in part, and the second takes 7, in a struct that still holds the addresses of the first.
TRAINING = """
import sys, torch
shapes = [(2048, 3072), (3072, 2048)] * 15
model = torch.nn.Sequential(*(torch.nn.Linear(*shape, bias=False) for shape in shapes)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True if "fused" in sys.argv else None)
for step in range(2):
    model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    torch.cuda.synchronize()
    optimizer.step()
    torch.cuda.synchronize()
    optimizer.zero_grad()
"""
FIRST, SECOND = 24 * 12, 7 * 12
ALL_STREAMS = 63


def um_blocks(execution: Execute) -> int:
    return len({(run.slot, block) for run in execution.unknown for block in range(run.first, run.first + run.count)})


@pytest.fixture
def second_step(deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Callable[..., list[int]]:
    """UM blocks that each launch of the second optimizer step names."""

    def second_step(*arguments: str) -> list[int]:
        script, log = tmp_path / "training.py", tmp_path / "log"
        script.write_text(TRAINING)
        result = deepum("run", "--device", "sim:v100-16gb", "--record", log, "--", sys.executable, script, *arguments, timeout=300)
        assert result.returncode == 0, result.stderr
        told = list(events(EventLog.read(log).records))
        waits = [
            i for i, event in enumerate(told) if isinstance(event, Stream) and event.kind == "synchronise" and event.stream == ALL_STREAMS
        ]
        return [um_blocks(event) for event in told[waits[2] : waits[3]] if isinstance(event, Execute)]

    return second_step


def test_foreach_launches_name_their_tensors_only(second_step: Callable[..., list[int]]) -> None:
    told = second_step()
    lists = [named // FIRST for named in told[::2]]
    assert max(lists) == 3 and min(lists) == 1  # addcdiv reads two and updates one; mul updates one
    assert told[::2] == [count * FIRST for count in lists]
    assert told[1::2] == [count * SECOND for count in lists]


def test_fused_launches_name_their_tensors_and_step_counters_only(second_step: Callable[..., list[int]]) -> None:
    # Counters are counted up first; all of them lie in one UM block.
    assert second_step("fused") == [1, 4 * FIRST + 1, 4 * SECOND + 1]
