"""`deepum doctor` as a command: what it tells, how it ends."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
ALWAYS = {
    "deepum",
    "runtime folder",
    "host memory",
    "overcommit",
    "limits",
    "shared memory",
    "PyTorch",
    "allocator",
}
OF_DRIVER = {
    "GPU",
    "driver",
    "unified memory",
    "prefetch",
    "discard",
    "kernel arguments",
    "fault source",
    "link",
}
ELSEWHERE = {"share", "device nodes", "driver libraries", "cuda-bindings"}


def _checks(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(ran.stdout)["checks"]}


def test_the_simulated_gpu_is_examined_whole(deepum: Deepum) -> None:
    ran = deepum("doctor", "--device", "sim:a100-40gb", "--json")
    checks = _checks(ran)
    assert set(checks) == ALWAYS | OF_DRIVER
    assert all(checks[name]["level"] == "ok" for name in OF_DRIVER), ran.stdout
    assert checks["GPU"]["data"]["devices"][0]["memory_bytes"] == 40 << 30
    link = checks["link"]["data"]
    # The machine's figures, in virtual time.
    assert link["to_gpu_pinned"] == pytest.approx(25, rel=0.05)
    assert link["to_gpu_on_demand"] < link["to_gpu_prefetch"] <= link["to_gpu_pinned"]
    assert link["to_host_on_demand"] is None


def test_lines_are_for_people(deepum: Deepum) -> None:
    ran = deepum("doctor", "--device", "sim")
    lines = ran.stdout.splitlines()
    assert len(lines) == len(ALWAYS | OF_DRIVER)
    assert all(re.match(r"(ok   |warn |fail ) \S", line) for line in lines)
    assert ran.returncode == int(any(line.startswith("fail") for line in lines))
    assert ran.stderr == ""


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_it_fails_with_a_remedy_and_the_rest_is_told(deepum: Deepum) -> None:
    ran = deepum("doctor", "--json")
    checks = _checks(ran)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["failed"] is True
    assert set(checks) - {"driver libraries"} == ALWAYS | {"GPU", "device nodes", "share"}
    assert checks["GPU"]["level"] == "fail"
    assert "--device sim" in checks["GPU"]["remedy"]


def test_without_the_bindings_the_extra_is_named_and_the_rest_is_told(
    deepum: Deepum, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "__init__.py").touch()  # before the real one, and without bindings
    path = f"{tmp_path}:{environment['PYTHONPATH']}"
    ran = deepum("doctor", "--device", "sim", "--json", env={"PYTHONPATH": path})
    checks = _checks(ran)
    assert ran.returncode == 1
    assert set(checks) == ALWAYS | {"cuda-bindings"}
    assert checks["cuda-bindings"]["remedy"] == "pip install 'deepum[cuda]'"


def test_a_card_without_concurrent_managed_access_fails(deepum: Deepum) -> None:
    ran = deepum(
        "doctor", "--device", "sim", "--json", env={"DEEPUM_SIM_CONCURRENT_MANAGED_ACCESS": "0"}
    )
    checks = _checks(ran)
    assert ran.returncode == 1
    assert checks["unified memory"]["level"] == "fail"
    assert "link" not in checks  # nothing can be moved


def test_an_allocator_around_cudamalloc_is_warned_of(deepum: Deepum) -> None:
    checks = _checks(
        deepum(
            "doctor",
            "--device",
            "sim",
            "--json",
            env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        )
    )
    assert checks["allocator"]["level"] == "warn"


def test_an_unknown_device_is_one_line(deepum: Deepum) -> None:
    ran = deepum("doctor", "--device", "sim:abacus")
    assert ran.returncode == 2
    assert ran.stderr.startswith("deepum: error: machine 'abacus'")
    assert ran.stderr.count("\n") == 1


def test_the_documentation_lists_every_check() -> None:
    text = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    table = text[text.index("| check |") : text.index("## Exit codes")]
    assert (
        set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == ALWAYS | OF_DRIVER | ELSEWHERE
    )
