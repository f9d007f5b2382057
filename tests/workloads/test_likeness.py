"""Captured, a workload is what the CUDA build of PyTorch does with it on the simulated GPU; with
`pytest -s`, how nearly.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from captured import Launch, events_of, launches

from deepum.core import Block
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.simulate.steps import steady, steps
from deepum.simulate.workload import recorded
from deepum.trace import Trace, work

pytestmark = pytest.mark.torch
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
MIB = 1 << 20
STEPS = 6
# Without convolutions, which the simulated GPU has no cuDNN for. MiB of memory: too little by a
# third or so.
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
        environment = kept | {
            "PYTHONPATH": path,
            "DEEPUM_RUNTIME_DIR": runtime,
            "DEEPUM_DAEMON_IDLE": "5",
        }
        command = [
            sys.executable,
            "-P",
            "-m",
            "deepum",
            "run",
            "--device",
            "sim:v100-16gb",
            "--record",
            str(log),
            "--",
        ]
        command += [sys.executable, "-P", "-c", _SCRIPT, name, str(STEPS)]
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    assert result.returncode == 0, result.stderr[-4000:]
    return recorded(log), capture(parse(name), STEPS, synchronise=True).trace


def last_step(trace: Trace) -> list[Launch]:
    """Launches of the last step: as many as lie between the last two waits, from the end."""
    made = launches(trace)
    waits = [event.sequence for event in events_of(trace, "synchronise")]
    return [one for one in made if waits[-2] < one.event.sequence < waits[-1]]


@pytest.fixture(scope="module")
def last(both: tuple[Trace, Trace]) -> list[list[Launch]]:
    """The last step of each."""
    return [last_step(trace) for trace in both]


def alike(what: str, pair: Iterable[float], rel: float) -> None:
    """The captured figure is the real one but for that part of it."""
    real, captured = pair
    print(f"{what}: {real:g}, captured {captured:g}")
    assert captured == pytest.approx(real, rel=rel)


def test_memory_is_the_same(both: tuple[Trace, Trace]) -> None:
    peaks = [
        max(
            event.allocated_bytes
            for event in events_of(trace, "block_active")
            if isinstance(event, Block)
        )
        for trace in both
    ]
    reserved = [
        max(
            event.reserved_bytes
            for event in events_of(trace, "block_active")
            if isinstance(event, Block)
        )
        for trace in both
    ]
    alike("MiB allocated at most", (peak / MIB for peak in peaks), 0.005)
    alike("MiB reserved", (size / MIB for size in reserved), 0.02)


def test_arithmetic_is_the_same(last: list[list[Launch]]) -> None:
    alike("FLOP", (sum(one.work.flops for one in step) for step in last), 1e-9)


def test_products_are_cut_into_the_same_tiles(last: list[list[Launch]]) -> None:
    real, captured = (sorted(one.work.tiles for one in step if one.work.tiles) for step in last)
    assert captured == real


def test_launches_are_nearly_as_many(last: list[list[Launch]]) -> None:
    alike(
        "kernels", (sum(not one.work.flags & work.UNCOUNTED for one in step) for step in last), 0.06
    )


def test_nearly_as_much_memory_is_touched(last: list[list[Launch]]) -> None:
    touched = [[access for one in step for access in one.places] for step in last]
    alike(
        "bytes read and written",
        (sum(access.bytes * (access.flags & 3).bit_count() for access in one) for one in touched),
        0.05,
    )


@pytest.mark.parametrize("policy", ["unlimited", "on-demand", "deepum"])
def test_steps_take_nearly_as_long(both: tuple[Trace, Trace], name: str, policy: str) -> None:
    memory = 1 << 40 if policy == "unlimited" else WORKLOADS[name] * MIB
    times = []
    for trace in both:
        # As what is real runs.
        outcome = replay(
            trace, machine("v100-16gb"), BY_NAME[policy].settings(1024), memory, mode=LOCK_STEP
        )
        kept = steady(steps(outcome, trace))
        times.append(sum(step.ns for step in kept) / len(kept))
    alike(f"ms, {policy}", (ns / 1e6 for ns in times), 0.1)
