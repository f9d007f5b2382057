"""Captured, a workload is what the CUDA build of PyTorch does with it on the simulated GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from captured import Launch, launches, told

from deepum.core import Block
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.simulate.steps import steady, steps
from deepum.simulate.workload import recorded
from deepum.trace import Trace, work

pytestmark = pytest.mark.torch
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
MIB = 1 << 20
STEPS = 5
# Without convolutions, which the simulated GPU has no cuDNN for. MiB of memory: too little by a third or so.
WORKLOADS = {
    "gpt2-small:batch=8": 10_000,
    "bert-base:batch=16,seq=256": 4_000,
}
_SCRIPT = """
import sys, torch
from deepum.workloads import parse
job = parse(sys.argv[1]).build("cuda")
for _ in range(int(sys.argv[2])):
    job.step()
    torch.cuda.synchronize()
"""


@pytest.fixture(scope="module", params=WORKLOADS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def both(name: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    """A recorded run and a capture."""
    import os
    import tempfile

    from deepum.capture.record import capture
    from deepum.workloads import parse

    log = tmp_path_factory.mktemp("likeness") / "run.log"
    site = Path(__file__).resolve().parents[1] / "programs" / "site"
    with tempfile.TemporaryDirectory(prefix="deepum-t-") as runtime:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("DEEPUM_")}
        path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
        environment = kept | {"PYTHONPATH": path, "DEEPUM_RUNTIME_DIR": runtime, "DEEPUM_DAEMON_IDLE": "5"}
        command = [sys.executable, "-P", "-m", "deepum", "run", "--device", "sim:v100-16gb", "--record", str(log), "--"]
        command += [sys.executable, "-P", "-c", _SCRIPT, name, str(STEPS)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    return recorded(log), capture(parse(name), STEPS, synchronise=True).trace


def last_step(trace: Trace) -> list[Launch]:
    """Launches of the last step: as many as lie between the last two waits, from the end."""
    made = launches(trace)
    waits = [event.sequence for event in told(trace, "synchronise")]
    return [one for one in made if waits[-2] < one.event.sequence < waits[-1]]


def test_memory_is_the_same(both: tuple[Trace, Trace]) -> None:
    peaks = [max(event.allocated_bytes for event in told(trace, "block_active") if isinstance(event, Block)) for trace in both]
    reserved = [max(event.reserved_bytes for event in told(trace, "block_active") if isinstance(event, Block)) for trace in both]
    assert peaks[1] == pytest.approx(peaks[0], rel=0.005)
    assert reserved[1] == pytest.approx(reserved[0], rel=0.02)


def test_arithmetic_is_the_same(both: tuple[Trace, Trace]) -> None:
    real, captured = (sum(one.work.flops for one in last_step(trace)) for trace in both)
    assert captured == pytest.approx(real, rel=1e-9)


def test_products_are_cut_into_the_same_tiles(both: tuple[Trace, Trace]) -> None:
    real, captured = (sorted(one.work.tiles for one in last_step(trace) if one.work.tiles) for trace in both)
    assert captured == real


def test_launches_are_nearly_as_many(both: tuple[Trace, Trace]) -> None:
    real, captured = (sum(not one.work.flags & work.UNCOUNTED for one in last_step(trace)) for trace in both)
    assert captured == pytest.approx(real, rel=0.05)


def test_nearly_as_much_memory_is_touched(both: tuple[Trace, Trace]) -> None:
    real, captured = (
        sum(access.bytes * (access.flags & 3).bit_count() for one in last_step(trace) for access in one.places) for trace in both
    )
    assert captured == pytest.approx(real, rel=0.05)


@pytest.mark.parametrize("policy", ["unlimited", "on-demand", "deepum"])
def test_steps_take_nearly_as_long(both: tuple[Trace, Trace], name: str, policy: str) -> None:
    memory = 1 << 40 if policy == "unlimited" else WORKLOADS[name] * MIB
    times = []
    for trace in both:
        outcome = replay(trace, machine("v100-16gb"), BY_NAME[policy].settings(1024), memory)
        kept = steady(steps(outcome, trace))
        times.append(sum(step.ns for step in kept) / len(kept))
    assert times[1] == pytest.approx(times[0], rel=0.1)
