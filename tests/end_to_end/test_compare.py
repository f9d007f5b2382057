"""`deepum compare` with a program on the simulated GPU: each run is that of `deepum run`, and
what has run is shown however the comparison ends.
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
from required import needed

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
FLAGS = ("--device", "sim", "--gpu-memory", "256MiB")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "driver_api"


@pytest.fixture(scope="session")
def sweep(compile_program: Callable[..., Path]) -> list[str]:
    """A command that adds to 10 arrays of 40 MiB in turn, 12 times, and reads them back."""
    kernels = compile_program(EXAMPLES / "kernels.c", shared=True)
    program = compile_program(EXAMPLES / "sweep.c", link_cuda=True)
    return [str(program), str(kernels), "10", "40", "12"]


def test_each_run_is_that_of_run(deepum: Deepum, sweep: list[str], tmp_path: Path) -> None:
    result = deepum("compare", *FLAGS, "--json", "c.json", "--", *sweep)
    assert result.returncode == 0, result.stderr
    compared = json.loads((tmp_path / "c.json").read_text())
    assert compared["command"] == sweep
    assert [row["name"] for row in compared["rows"]] == ["on-demand", "deepum", "unlimited"]
    options = {
        "on-demand": (*FLAGS, "--policy", "on-demand"),
        "deepum": FLAGS,
        "unlimited": ("--device", "sim", "--gpu-memory", "1TiB", "--policy", "on-demand"),
    }
    same = ("gpu_time_s", "compute_s", "faults", "bytes_h2d", "bytes_d2h", "kernels", "policy")
    for run in compared["runs"]:
        alone = deepum("run", *options[run["name"]], "--stats", "s.json", "--", *sweep)
        assert alone.returncode == 0, alone.stderr
        statistics = json.loads((tmp_path / "s.json").read_text())
        assert {key: run["statistics"][key] for key in same} == {
            key: statistics[key] for key in same
        }
    paged, prefetched, unlimited = compared["rows"]
    assert paged["ms"] > prefetched["ms"] > unlimited["ms"] > 0
    assert prefetched["over_on_demand"] == pytest.approx(paged["ms"] / prefetched["ms"])
    table = result.stdout.splitlines()
    program = [line for line in table if not line.startswith(" ")]
    assert sum(line.split()[:1] == ["deepum"] and " x" in line for line in table) == 1
    assert (
        f"deepum is {prefetched['over_on_demand']:.2f} times as fast as on-demand" in result.stdout
    )
    assert program


def test_the_page_has_all_runs(deepum: Deepum, sweep: list[str], tmp_path: Path) -> None:
    needed("vl_convert", "report")
    result = deepum("compare", *FLAGS, "-o", "c.html", "--", *sweep)
    assert result.returncode == 0, result.stderr
    html = (tmp_path / "c.html").read_text()
    assert "<h1>deepum compare</h1>" in html
    assert all(f">Run {name}</h2>" in html for name in ("on-demand", "deepum", "unlimited"))
    assert "Runs beside each other" in html


def test_what_is_learned_is_not_handed_on(deepum: Deepum, sweep: list[str], tmp_path: Path) -> None:
    """A profile or a record that the environment asks for is not the comparison's."""
    variables = {"DEEPUM_PROFILE": str(tmp_path / "p"), "DEEPUM_RECORD": str(tmp_path / "r")}
    result = deepum("compare", *FLAGS, "--policies", "deepum", "--", *sweep, env=variables)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "p").exists() and not (tmp_path / "r").exists()


@pytest.mark.parametrize("code", [0, 5])
def test_what_has_run_is_shown_when_it_is_interrupted(
    environment: dict[str, str], sweep: list[str], tmp_path: Path, code: int
) -> None:
    """As Ctrl-C does it, in the second run; the program may end well all the same."""
    (tmp_path / "program").write_text(
        f"[ -e once ] || {{ touch once; exec {' '.join(sweep)}; }}\n"
        f"trap 'exit {code}' INT; touch waiting; while :; do sleep 0.1; done\n"
    )
    command = [sys.executable, "-P", "-m", "deepum", "compare", *FLAGS, "--", "sh", "program"]
    running: subprocess.Popen[str] = subprocess.Popen(
        command,
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not (tmp_path / "waiting").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out, messages = running.communicate(timeout=60)
    assert running.returncode == (130 if code == 0 else code)
    rows: list[Any] = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert rows == ["policy", "on-demand"]
    how = "was interrupted" if code == 0 else f"the program exited with code {code}"
    assert messages.splitlines()[-1] == f"deepum: run deepum: {how}; not run: unlimited"


@pytest.mark.parametrize("machine", ["v100-16gb", "rtx4090"])
def test_where_to_look_next_is_a_command_that_runs(
    deepum: Deepum, sweep: list[str], tmp_path: Path, machine: str
) -> None:
    """What `deepum run` says last: the replay is of the same machine and memory."""
    needed("vl_convert", "report")
    flags = ("--device", f"sim:{machine}", "--gpu-memory", "256MiB")
    result = deepum("run", *flags, "--stats", "s.json", "--record", "run.log", "--", *sweep)
    (line,) = [one for one in result.stderr.splitlines() if one.startswith("deepum: next: ")]
    command = line.split("charts: deepum ")[1].split(";")[0].split()
    assert command[:3] == ["report", "s.json", "run.log"] and "256MiB" in command
    drawn = deepum(*command)
    assert drawn.returncode == 0, drawn.stderr
    html = (tmp_path / "report.html").read_text()
    assert f"run.log on {machine}, 256.0 MiB" in html
    seconds = json.loads((tmp_path / "s.json").read_text())["gpu_time_s"]
    assert f"{seconds:.3f} s of virtual GPU time" in html
