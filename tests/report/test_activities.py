"""What a replay tells of what happened and when: it adds up to the counters, and telling it changes
nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from deepum._core import lib
from small import MIB, random_iteration, training

from deepum.core import BlockRange, Execute, commands, events
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import Outcome, machine, replay
from deepum.trace import Trace, TraceWriter, g10, work

IN = ("COPY_IN", "PREFETCH", "FAULT", "REMOTE_IN")
OUT = ("COPY_OUT", "EVICT", "DRIVER_EVICT", "REMOTE_OUT")


def of(outcome: Outcome, *kinds: str) -> np.ndarray:
    numbers = [getattr(lib, f"DEEPUM_ACTIVITY_{kind}") for kind in kinds]
    return outcome.activities[np.isin(outcome.activities["kind"], numbers)]


def run(
    trace: Trace, policy: str, memory: int, on: str = "v100-16gb", kept: bool = True
) -> Outcome:
    figures = machine(on)
    return replay(
        trace,
        figures,
        BY_NAME[policy].settings(int(figures.launch_queue)),
        memory,
        keep_commands=True,
        keep_activities=kept,
    )


def check(outcome: Outcome) -> None:
    """All that is counted is told, once."""
    activities, counted = outcome.activities, outcome.counters
    assert np.all(np.diff(activities["start_ns"]) >= 0)
    assert np.all(activities["end_ns"] >= activities["start_ns"])
    assert of(outcome, *IN)["bytes"].sum() == counted["bytes_h2d"]
    assert of(outcome, *OUT)["bytes"].sum() == counted["bytes_d2h"]
    assert of(outcome, "PREFETCH")["bytes"].sum() == counted["bytes_prefetched"]
    assert of(outcome, "DRIVER_EVICT")["bytes"].sum() == counted["bytes_driver_evicted"]
    assert of(outcome, "DISCARD")["bytes"].sum() == counted["bytes_discarded"]
    assert of(outcome, "FAULT")["count"].sum() == counted["faults"]
    assert len(of(outcome, "FAULT")) == counted["fault_batches"]
    assert len(of(outcome, "KERNEL")) == counted["kernels"]
    kernels = of(outcome, "KERNEL")
    assert kernels["stall_ns"].sum() == pytest.approx(counted["stall_ns"])
    assert (kernels["end_ns"] - kernels["start_ns"] - kernels["stall_ns"]).sum() == pytest.approx(
        counted["compute_ns"]
    )
    machines = activities[activities["kind"] <= lib.DEEPUM_ACTIVITY_RELEASE]
    assert machines["resident_bytes"].max() <= counted["peak_resident_bytes"]


@pytest.mark.parametrize(
    "policy", ["on-demand", "deepum-paper", "deepum", "deepum-no-invalidation"]
)
@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_activities_add_up_to_the_counters(tmp_path: Path, policy: str, seed: int) -> None:
    trace = g10.trace(random_iteration(tmp_path / "w", seed), 5, synchronise=seed % 2 == 0)
    outcome = run(trace, policy, 24 * MIB)
    assert outcome.counters["bytes_h2d"] > 0
    check(outcome)


@pytest.mark.parametrize("policy", ["on-demand", "deepum"])
def test_a_run_whose_activities_are_kept_is_the_same(tmp_path: Path, policy: str) -> None:
    trace = g10.trace(training(tmp_path / "w"), 4)
    kept, plain = run(trace, policy, 192 * MIB), run(trace, policy, 192 * MIB, kept=False)
    assert len(plain.activities) == 0 < len(kept.activities)
    assert (kept.ns, kept.counters, kept.commands, kept.marks) == (
        plain.ns,
        plain.counters,
        plain.commands,
        plain.marks,
    )


def test_a_kernel_and_what_it_was_held_for_name_its_event(tmp_path: Path) -> None:
    trace = g10.trace(training(tmp_path / "w"), 4)
    outcome = run(trace, "deepum", 192 * MIB)
    launched = [event.sequence for event in events(trace.events) if isinstance(event, Execute)]
    kernels = of(outcome, "KERNEL")
    assert kernels["tag"].tolist() == launched
    starts = dict(zip(kernels["tag"].tolist(), kernels["start_ns"].tolist(), strict=True))
    holds = of(outcome, "HOLD")
    assert len(holds) > 0
    assert all(starts[int(hold["tag"])] == hold["end_ns"] for hold in holds)


def test_decisions_are_those_of_the_core(tmp_path: Path) -> None:
    trace = g10.trace(training(tmp_path / "w"), 4)
    outcome = run(trace, "deepum", 192 * MIB)
    decided = of(outcome, "DECISION")
    given = Counter(command.kind for command in commands(outcome.commands))
    assert set(given) == {"prefetch", "populate", "evict", "discard", "hold"}
    for kind, count in given.items():
        assert (
            decided[decided["command"] == getattr(lib, f"DEEPUM_COMMAND_{kind.upper()}")][
                "count"
            ].sum()
            == count
        )
    assert set(decided["tag"].tolist()) <= {event.sequence for event in events(trace.events)}


def test_copies_of_the_program_and_memory_given_back_are_told() -> None:
    writer = TraceWriter()
    writer.device(64)
    writer.allocate(0, 8)
    whole = BlockRange(0, 0, 8)
    into = writer.execute(1, written=[whole], flags=lib.DEEPUM_EXECUTE_COPY)
    writer.launch(7, [whole], [work.Access(0, work.READ | work.WRITE, 0, 16 * MIB)], 1e6)
    out = writer.execute(2, read=[whole], flags=lib.DEEPUM_EXECUTE_COPY)
    writer.free(0)
    writer.launch(8, [], [], 1e6)
    made = writer.trace("copies")
    outcome = run(made, "on-demand", 64 * MIB)
    check(outcome)
    assert into < out
    assert (
        of(outcome, "COPY_IN")["bytes"].tolist()
        == of(outcome, "COPY_OUT")["bytes"].tolist()
        == [16 * MIB]
    )
    (released,) = of(outcome, "RELEASE")
    assert (released["bytes"], released["resident_bytes"]) == (16 * MIB, 0)
    assert of(outcome, "COPY_OUT")["resident_bytes"].tolist() == [16 * MIB]
    assert of(outcome, "KERNEL")["resident_bytes"].tolist() == [16 * MIB, 0]


def test_damaged_traces_are_refused_or_told_of(tmp_path: Path) -> None:
    """Never a crash: what a replay takes is told in times that are numbers."""
    made = g10.trace(training(tmp_path / "w", layers=3), 2)
    random = Random(7)
    refused = 0
    for _ in range(200):
        broken_events, broken_work = bytearray(made.events), bytearray(made.work)
        for _ in range(random.randrange(1, 5)):
            target = random.choice((broken_events, broken_work))
            target[random.randrange(len(target))] = random.randrange(256)
        try:
            outcome = run(
                Trace("broken", bytes(broken_events), bytes(broken_work)), "deepum", 64 * MIB
            )
        except ValueError:
            refused += 1
            continue
        activities = outcome.activities
        assert np.all(
            np.isfinite(activities["start_ns"]) & (activities["end_ns"] >= activities["start_ns"])
        )
        assert of(outcome, *IN)["bytes"].sum() == outcome.counters["bytes_h2d"]
        assert of(outcome, *OUT)["bytes"].sum() == outcome.counters["bytes_d2h"]
    assert 0 < refused < 200
