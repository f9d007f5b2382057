"""A program that computes, with more memory than the card has: its results are right whatever
deepum does, and it gets faster.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import holders, lock_of, socket_of

from deepum.core import CoreSettings, EventLog, Execute, events, replay
from deepum.statistics.keys import KEYS

OLDEST_LAST_USE = 1
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


def test_prefetching_removes_the_faults_and_on_demand_does_not(
    run_sweep: Callable[..., Any],
) -> None:
    correlation, on_demand = (
        run_sweep("--policy", "correlation", rounds=8),
        run_sweep("--policy", "on-demand", rounds=8),
    )
    assert on_demand.rounds[-1] > 0.9 * on_demand.rounds[1]
    assert correlation.rounds[-1] < on_demand.rounds[-1] / 2
    assert correlation.statistics["faults"] < on_demand.statistics["faults"] / 2
    assert correlation.statistics["prefetch_accuracy"] > 0.8
    assert on_demand.statistics["bytes_prefetched"] == 0


def test_statistics_have_the_documented_keys(run_sweep: Callable[..., Any]) -> None:
    statistics = run_sweep(rounds=3).statistics
    assert list(statistics) == list(KEYS)
    assert statistics["device"] == "sim:v100-16gb"
    assert statistics["kernels"] == 30
    assert statistics["peak_resident_bytes"] <= 256 << 20
    assert statistics["peak_allocated_bytes"] == 400 << 20
    assert statistics["daemon_events"] > 30 and statistics["execution_ids"] >= 10
    assert statistics["warnings"] == []


def test_two_runs_are_equal_to_the_bit_and_replay_gives_the_same_commands(
    run_sweep: Callable[..., Any], deepum: Deepum, tmp_path: Path
) -> None:
    first, second = run_sweep("--record", tmp_path / "a"), run_sweep("--record", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert first.result.stdout == second.result.stdout
    replayed = deepum("log", "replay", tmp_path / "a")
    assert replayed.returncode == 0, replayed.stderr + replayed.stdout
    assert int(replayed.stdout.split()[2]) > 0


def test_with_a_profile_the_second_run_prefetches_from_its_first_round(
    run_sweep: Callable[..., Any], tmp_path: Path
) -> None:
    run_sweep("--profile", tmp_path / "profile")
    learned = (tmp_path / "profile").read_bytes()
    run_sweep("--profile", tmp_path / "profile", "--record", tmp_path / "log", rounds=1)
    log = EventLog.read(tmp_path / "log")
    touched = {
        event.sequence: {run.slot for run in event.ranges}
        for event in events(log.records)
        if isinstance(event, Execute)
    }

    def ahead(profile: bytes | None) -> int:
        # By last use: a profile does not have next uses, and without these nothing leaves for what
        # is only predicted.
        given = replay(
            log,
            CoreSettings.default(**{**log.settings["settings"], "eviction_order": OLDEST_LAST_USE}),
            profile,
        )
        return sum(
            command.kind in ("prefetch", "populate")
            and command.slot not in touched.get(command.cause, set())
            for command in given
        )

    assert ahead(None) == 0
    assert ahead(learned) > 0


def test_a_corrupt_profile_stops_the_run_before_it_starts(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    (tmp_path / "profile").write_bytes(os.urandom(5000))
    result = deepum("run", "--device", "sim", "--profile", "profile", "--", *sweep)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_several_programs_share_a_daemon(
    environment: dict[str, str], sweep: list[str], runtime_dir: Path
) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "256MiB",
        "--",
        *sweep,
        "8",
        "40",
        "5",
    ]
    running = [
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], outputs
    assert len({stdout for stdout, _ in outputs}) == 1
    log = (runtime_dir / "daemon.log").read_text()
    assert (
        log.count(" began\n") - log.count("process") // 2 <= 3
        and log.count("session of process") == 6
    )


def test_a_killed_daemon_leaves_the_program_to_end_well(
    environment: dict[str, str], sweep: list[str], runtime_dir: Path
) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "256MiB",
        "--",
        *sweep,
        "8",
        "40",
        "8",
    ]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        assert run.stdout.readline().startswith("round 1")
        for process in holders(lock_of(runtime_dir)):
            os.kill(process, signal.SIGKILL)
        assert run.stdout.read().endswith("all 8 arrays are right\n")
        assert run.wait(60) == 0
        messages = run.stderr.read()
        assert "Traceback" not in messages and "the daemon ended before it reported" in messages


def test_a_killed_program_is_reported_and_cleaned_up(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    script = f"{' '.join(sweep)} 8 40 100000 & sleep 1.5; kill -9 $!; wait $!; exit 5"
    result = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "256MiB",
        "--stats",
        "s.json",
        "--",
        "sh",
        "-c",
        script,
    )
    assert result.returncode == 5
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert len(statistics["processes"]) == 1
    assert statistics["processes"][0]["session"]["core"]["launches"] > 0


def test_nothing_is_left_behind(run_sweep: Callable[..., Any], tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    run_sweep(rounds=2, env={"TMPDIR": str(temporary)})
    assert not list(temporary.iterdir())


def test_the_shim_works_without_the_launcher(
    environment: dict[str, str], package: Path, sweep: list[str], runtime_dir: Path
) -> None:
    by_hand = {
        "LD_PRELOAD": str(package / "lib" / "libdeepum.so"),
        "LD_LIBRARY_PATH": str(package / "sim"),
        "DEEPUM_SIM_MEMORY": str(256 << 20),
        "DEEPUM_SYNC": "1",
        "DEEPUM_DAEMON": sys.executable,
    }
    result = subprocess.run(
        [*sweep, "8", "40", "5"],
        env=environment | by_hand,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "session of process" in (runtime_dir / "daemon.log").read_text()


def test_disabled_the_shim_does_nothing(
    deepum: Deepum, sweep: list[str], runtime_dir: Path
) -> None:
    small = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "256MiB",
        "--",
        *sweep,
        2,
        40,
        2,
        env={"DEEPUM_DISABLE": "1"},
    )
    assert small.returncode == 0, small.stderr
    large = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "256MiB",
        "--",
        *sweep,
        10,
        40,
        2,
        env={"DEEPUM_DISABLE": "1"},
    )
    assert large.returncode == 1 and "CUDA_ERROR_OUT_OF_MEMORY" in large.stderr
    assert not socket_of(runtime_dir).exists()


def test_a_program_that_forks_and_waits_for_all_children_is_not_held_up(
    environment: dict[str, str], sweep: list[str]
) -> None:
    """The daemon must not be a child that somebody could wait for."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum",
        "run",
        "--device",
        "sim",
        "--",
        "sh",
        "-c",
        f"{' '.join(sweep)} 2 8 2 & wait; echo waited",
    ]
    began = time.monotonic()
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout.endswith("waited\n")
    assert time.monotonic() - began < 30


def test_behind_gates_a_program_that_runs_free_faults_on_nothing_that_is_foreseen(
    run_sweep: Callable[..., Any],
) -> None:
    """Launches wait on their streams for what is fetched for them; without gates they meet it on
    its way.
    """
    gated, ungated = (
        run_sweep("--no-sync", "--tune", f"gates={gates}", rounds=10) for gates in (1, 0)
    )
    faults = [run.statistics["faults"] for run in (gated, ungated)]
    assert faults[0] < 0.6 * faults[1], faults


@pytest.mark.parametrize("calls", [1, 2])
def test_a_driver_that_blocks_the_mover_is_found_out_and_moves_go_on(
    run_sweep: Callable[..., Any], tmp_path: Path, calls: int
) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"like": "v100-16gb", "blocking_calls": calls}))
    ran = run_sweep("--no-sync", "--device", f"sim:{machine}", "--log", "2", rounds=30)
    assert "the driver blocks a thread that moves memory behind an event" in ran.result.stderr
    # No launch waits for a mover that stands in a call.
    assert "all were opened" not in ran.result.stderr
    assert ran.statistics["bytes_prefetched"] > 0 and ran.statistics["prefetch_accuracy"] > 0.5
