"""A recorded run, replayed: the same commands for the same events, at the same times."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepum.core import CoreSettings, Execute, events
from deepum.simulate import lms
from deepum.simulate.bound import Link
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run as observed
from deepum.simulate.replay import Outcome, machine, replay
from deepum.simulate.steps import steps
from deepum.simulate.workload import Workload, recorded
from deepum.simulate.workload_bounds import lower_bounds
from deepum.trace import Trace, work_path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MIB = 1 << 20
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def sweep(compile_program: Callable[..., Path]) -> list[str]:
    """A program of the driver API: it adds to 10 arrays of 40 MiB in turn, 6 times, and reads them
    back.
    """
    kernels = compile_program(EXAMPLES / "driver_api" / "kernels.c", shared=True)
    return [
        str(compile_program(EXAMPLES / "driver_api" / "sweep.c", link_cuda=True)),
        str(kernels),
        "10",
        "40",
        "6",
    ]


def run(
    deepum: Deepum,
    folder: Path,
    *command: str,
    options: tuple[str, ...] = (),
    memory: int = 256 * MIB,
) -> tuple[Trace, dict[str, Any]]:
    """Records the program; its trace, and what the simulated driver counted."""
    log, stats = folder / "run.log", folder / "run.json"
    result = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        memory,
        "--record",
        log,
        "--stats",
        stats,
        *options,
        "--",
        *command,
    )
    assert result.returncode == 0, result.stderr
    return recorded(log), json.loads(stats.read_text())["processes"][0]["simulated"]


def again(
    trace: Trace,
    memory: int = 256 * MIB,
    faults: bool = False,
    without_prefetch: bool = False,
    profile: bytes = b"",
) -> Outcome:
    """Replayed as it was recorded."""
    return replay(
        trace,
        machine("v100-16gb"),
        CoreSettings.default(**trace.settings["settings"]),
        memory,
        keep_commands=True,
        observe_faults=faults,
        without_prefetch=without_prefetch,
        profile=profile,
        mode=LOCK_STEP,  # as the simulated GPU runs
    )


def same(outcome: Outcome, trace: Trace, statistics: dict[str, Any]) -> None:
    """Equal commands, counters, and times of all the program's waits."""
    assert hashlib.sha256(outcome.commands).hexdigest() == trace.settings["commands_sha256"]
    for counter in (
        "faults",
        "fault_batches",
        "bytes_h2d",
        "bytes_d2h",
        "bytes_demand",
        "bytes_driver_evicted",
        "bytes_discarded",
        "kernels",
    ):
        assert outcome.counters[counter] == statistics[counter], counter
    seconds = statistics["gpu_time_s"]
    assert outcome.counters["gpu_time_ns"] / 1e9 == pytest.approx(seconds, rel=1e-3)
    waits = [mark.ns / 1e9 for mark in outcome.marks]
    recorded_waits = [point["t_s"] for point in statistics["timeline"]]
    assert len(waits) > 5
    # The driver tells some of its waits only, and of a free also the end.
    for wait in waits:
        assert min(abs(wait - point) for point in recorded_waits) < 1e-3 * seconds


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--tune", "eviction_order=furthest-next-use"),
        ("--tune", "prediction=tables,eviction_order=least-recently-migrated,prefetch_degree=32"),
        ("--tune", "launch_queue=4"),
        ("--policy", "on-demand"),
        ("--tune", "prefetch=0"),
        ("--tune", "advice=duplicate", "--faults", "auto"),
    ],
)
def test_a_driver_api_program_is_replayed_to_the_command(
    deepum: Deepum, sweep: list[str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    trace, statistics = run(deepum, tmp_path, *sweep, options=options)
    same(
        again(trace, faults="--faults" in options, without_prefetch="prefetch=0" in options),
        trace,
        statistics,
    )


def test_a_run_with_a_profile_is_replayed_with_it(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    run(deepum, tmp_path, *sweep, options=("--profile", str(profile)))
    learned = profile.read_bytes()
    trace, statistics = run(deepum, tmp_path, *sweep, options=("--profile", str(profile)))
    same(again(trace, profile=learned), trace, statistics)
    assert again(trace).commands != again(trace, profile=learned).commands
    with pytest.raises(ValueError, match="the profile is damaged"):
        again(trace, profile=learned[:-8])


def test_its_rounds_are_found(deepum: Deepum, sweep: list[str], tmp_path: Path) -> None:
    trace, _ = run(deepum, tmp_path, *sweep)
    found = steps(again(trace), trace)
    assert len(found) >= 6
    assert {step.launches for step in found[1:]} == {10}


def test_launches_are_those_of_the_trace_and_bound_its_steps(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    """Events that only the recorded run had take sequences of their own."""
    trace, _ = run(deepum, tmp_path, *sweep)
    sequences = [event.sequence for event in events(trace.events) if isinstance(event, Execute)]
    assert "free_memory" in {event.kind for event in events(trace.events)}
    workload = Workload("sweep", trace, "v100-16gb")
    outcome = observed(workload, "v100-16gb", BY_NAME["unlimited"], 256 * MIB, keep_launches=True)
    assert {launch.sequence for launch in outcome.launches} <= set(sequences)
    bounds, _ = lower_bounds(workload, outcome, [Link(256 * MIB, 12.0, 12.0)], 3)
    kernels = sum(launch.kernel_ns for launch in outcome.launches) / 6
    assert bounds[0] is not None and bounds[0] >= 0.99 * kernels


def test_another_card_is_another_result(deepum: Deepum, sweep: list[str], tmp_path: Path) -> None:
    """What was recorded on a card where it does not fit is simulated on one where it does, and the
    other way round.
    """
    trace, _ = run(deepum, tmp_path, *sweep)
    settings = BY_NAME["deepum"].settings(1024)
    small, large = (
        replay(trace, machine("v100-16gb"), settings, memory) for memory in (256 * MIB, 1024 * MIB)
    )
    assert large.core.commands == 0 < small.core.commands
    assert large.ns < small.ns
    fits, _ = run(deepum, tmp_path, *sweep, memory=1024 * MIB)
    assert replay(fits, machine("v100-16gb"), settings, 256 * MIB).ns == pytest.approx(
        small.ns, rel=0.02
    )


def test_without_the_work_a_launch_takes_as_long_as_its_memory_lets_it(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    whole, statistics = run(deepum, tmp_path, *sweep)
    work_path(tmp_path / "run.log").unlink()
    bare = recorded(tmp_path / "run.log")
    assert bare.work == b""
    assert bare.events == whole.events
    outcome = again(bare)
    assert hashlib.sha256(outcome.commands).hexdigest() == bare.settings["commands_sha256"], (
        "decisions do not depend on time"
    )
    assert outcome.ns == pytest.approx(statistics["gpu_time_s"] * 1e9, rel=0.01)


def test_the_work_of_an_earlier_recording_does_not_stay(deepum: Deepum, tmp_path: Path) -> None:
    work_path(tmp_path / "run.log").write_bytes(b"old")
    result = deepum("run", "--device", "sim", "--record", tmp_path / "run.log", "--", "true")
    assert result.returncode == 0
    assert not work_path(tmp_path / "run.log").exists()


@pytest.mark.torch
def test_a_training_script_of_pytorch_is_replayed_to_the_command(
    deepum: Deepum, tmp_path: Path
) -> None:
    script = [
        sys.executable,
        str(EXAMPLES / "train_gpt2.py"),
        "--model",
        "tiny",
        "--batch",
        "4",
        "--sequence",
        "256",
        "--steps",
        "5",
    ]
    trace, statistics = run(
        deepum, tmp_path, *script, options=("--tune", "invalidation=1"), memory=768 * MIB
    )
    outcome = again(trace, 768 * MIB)
    same(outcome, trace, statistics)
    assert outcome.core.commands > 100
    assert outcome.counters["bytes_discarded"] > 0
    assert len(steps(outcome, trace)) >= 4


@pytest.mark.torch
def test_a_training_script_of_pytorch_is_followed_under_lms(deepum: Deepum, tmp_path: Path) -> None:
    """With its work, and from its events alone."""
    script = [
        sys.executable,
        str(EXAMPLES / "train_gpt2.py"),
        "--model",
        "tiny",
        "--batch",
        "4",
        "--sequence",
        "256",
        "--steps",
        "5",
    ]
    whole, _ = run(deepum, tmp_path, *script, memory=2048 * MIB)
    for trace in (whole, replace(whole, work=b"")):
        workload = Workload("tiny", trace, "v100-16gb")
        outcomes = {
            name: observed(workload, "v100-16gb", BY_NAME[name], 768 * MIB)
            for name in ("lms", "on-demand", "unlimited")
        }
        swapped = lms.rewrite(trace, 768 * MIB).statistics
        unlimited = outcomes["unlimited"].counters
        assert swapped.bytes_in > 0
        assert outcomes["lms"].counters["bytes_h2d"] == swapped.bytes_in + unlimited["bytes_h2d"]
        assert outcomes["lms"].counters["faults"] == 0
        assert outcomes["unlimited"].ns < outcomes["lms"].ns < outcomes["on-demand"].ns
        assert [mark.launches for mark in outcomes["lms"].marks] == [
            mark.launches for mark in outcomes["unlimited"].marks
        ]
        assert outcomes["lms"].counters["compute_ns"] == pytest.approx(
            unlimited["compute_ns"], rel=1e-3
        )
        assert lms.rewrite(trace, 400 * MIB).out_of_memory is not None


def test_a_program_without_pytorch_is_not_followed(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    run(deepum, tmp_path, *sweep)
    result = deepum("simulate", tmp_path / "run.log", "--policy", "lms")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "deepum: error: policy 'lms': cannot follow run.log, which has no blocks of PyTorch's "
        "allocator; leave the policy out\n"
    )


_STREAMS = """
import torch
arrays = [torch.randn(16 << 20, device="cuda") for _ in range(8)]
streams, events = [torch.cuda.Stream() for _ in range(2)], [torch.cuda.Event() for _ in range(8)]
for _ in range(5):
    for i, array in enumerate(arrays):
        with torch.cuda.stream(streams[i % 2]):
            array.mul_(1.5)
            events[i].record()
        if i:
            streams[(i + 1) % 2].wait_event(events[i - 1])
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    total = arrays[0] + arrays[1]
    total[:1000].cpu()
"""


@pytest.mark.torch
def test_streams_that_wait_for_each_other_are_replayed_to_the_command(
    deepum: Deepum, tmp_path: Path
) -> None:
    trace, statistics = run(
        deepum,
        tmp_path,
        sys.executable,
        "-c",
        _STREAMS,
        options=("--tune", "invalidation=1"),
        memory=320 * MIB,
    )
    outcome = again(trace, 320 * MIB)
    same(outcome, trace, statistics)
    assert outcome.core.commands > 100
    assert outcome.counters["bytes_driver_evicted"] == 0 < outcome.core.holds, (
        "launches are held behind moves that wait for other streams"
    )
