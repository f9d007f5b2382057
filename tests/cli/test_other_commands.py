"""The commands beside `run`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


def test_path_prints_the_shim(deepum: Deepum, package: Path) -> None:
    assert deepum("path").stdout == f"{package / 'lib' / 'libdeepum.so'}\n"


def test_version_is_the_packages(deepum: Deepum) -> None:
    import deepum as module

    assert (
        deepum("version").stdout == deepum("--version").stdout == f"deepum {module.__version__}\n"
    )


def test_machines_are_listed_with_figures(deepum: Deepum) -> None:
    machines = json.loads(deepum("machines", "--json").stdout)
    assert {"v100-16gb", "v100-32gb", "rtx4090", "a100-40gb", "a100-40gb-g10", "h200"} <= {
        machine["name"] for machine in machines
    }
    assert all(machine["memory_bytes"] > 0 and machine["h2d_gbps"] > 0 for machine in machines)
    assert "v100-16gb" in deepum("machines").stdout


def test_help_names_every_command(deepum: Deepum) -> None:
    result = deepum("--help")
    assert result.returncode == 0
    names = (
        "run",
        "compare",
        "path",
        "doctor",
        "machines",
        "daemon",
        "log",
        "record",
        "simulate",
        "plan",
        "swapadvisor",
        "arena",
        "workloads",
        "report",
        "trace",
        "version",
    )
    assert all(name in result.stdout for name in names)
    assert deepum("run", "--help").returncode == 0


def test_output_into_a_closed_pipe_is_no_traceback(environment: dict[str, str]) -> None:
    import sys

    script = f"{sys.executable} -P -m deepum machines --json | true"
    result = subprocess.run(
        ["sh", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in result.stderr
