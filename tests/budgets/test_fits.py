"""What fits costs nothing: PyTorch's step on the simulated GPU takes as long as with plain device
memory, and nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from budget_tools import Ran

pytestmark = pytest.mark.torch
STEPS, WARM = 8, 3
TRAINING = f"""
import torch
layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batches = [torch.randn(512, 2048) for _ in range(2)]
x = batches[0].cuda()
marks = [torch.cuda.Event(enable_timing=True) for _ in range({STEPS} + 1)]
torch.cuda.synchronize()
marks[0].record()
for step in range({STEPS}):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    marks[step + 1].record()
    torch.cuda.synchronize()
tell(steps=[a.elapsed_time(b) for a, b in zip(marks, marks[1:])])
"""


@pytest.fixture
def steps(python: Callable[..., Ran]) -> Callable[..., tuple[list[float], Ran]]:
    def steps(**env: str) -> tuple[list[float], Ran]:
        ran = python(["--gpu-memory", "768MiB"], TRAINING, env=env)
        return ran.facts["steps"], ran

    return steps


def moved(ran: Ran, counter: str) -> list[int]:
    """That counter at each of the program's waits: the last STEPS are those after the steps."""
    timeline: list[dict[str, Any]] = ran.simulated["timeline"]
    return [int(point[counter]) for point in timeline]


def test_what_fits_is_neither_moved_nor_slower_than_plain_device_memory(
    steps: Callable[..., tuple[list[float], Ran]],
) -> None:
    plain, bare = steps(DEEPUM_DISABLE="1")
    times, ran = steps()
    assert (
        bare.statistics["processes"][0]["session"] is None
        and bare.simulated["peak_managed_bytes"] == 0
    )
    # Nearly all of the card.
    assert 0.85 * (768 << 20) < ran.simulated["peak_managed_bytes"] < 768 << 20
    assert len(times) == len(plain) == STEPS
    for ours, theirs in zip(times[WARM:], plain[WARM:], strict=True):
        assert ours == pytest.approx(theirs, rel=0.01)
    assert ran.core["commands"] == 0
    assert (
        ran.statistics["bytes_prefetched"]
        == ran.statistics["bytes_evicted"]
        == ran.statistics["bytes_invalidated"]
        == 0
    )
    for counter in ("bytes_h2d", "bytes_d2h", "faults"):
        at_waits = moved(ran, counter)
        assert at_waits[-1] == at_waits[-(STEPS - WARM) - 1], counter
    kernels = moved(ran, "kernels")
    # The points are those of the steps.
    assert kernels[-1] - kernels[-(STEPS - WARM) - 1] >= 40 * (STEPS - WARM)


def test_with_discards_allowed_it_is_the_same(
    steps: Callable[..., tuple[list[float], Ran]],
) -> None:
    with_discards, ran = steps()
    without, _ = steps(DEEPUM_INVALIDATION="0")
    assert with_discards[WARM:] == without[WARM:]
    assert ran.core["commands"] == 0 and ran.simulated["bytes_discarded"] == 0
