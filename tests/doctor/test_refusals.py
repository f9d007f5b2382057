"""Places where `deepum run` refuses to run programs, and --force."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deepum import host
from deepum.configuration.setting import Value
from deepum.device import Device, ask_driver
from deepum.doctor import hosts
from deepum.errors import DeepumError
from deepum.host import KernelDriver
from deepum.launcher.environment import device_environment
from deepum.safety import Gpu, reasons

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
GOOD = Gpu("card", 16 << 30, (8, 0), True)
BARE = Gpu("card", 16 << 30, (8, 0), False)
NEW = Gpu("card", 16 << 30, (12, 0), True)
PLENTY = 64 << 30
LACKING = {"DEEPUM_SIM_CONCURRENT_MANAGED_ACCESS": "0"}
ALLOCATES = """
from cuda.bindings import driver as d
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
assert d.cuMemAlloc(64 << 20)[0] == 0
"""


def _managed_bytes(stats: Path) -> int:
    """The most that was managed memory at a time."""
    return int(json.loads(stats.read_text())["processes"][0]["simulated"]["peak_managed_bytes"])


@pytest.mark.parametrize(
    ("gpus", "driver", "host_bytes", "thing"),
    [
        ([GOOD], KernelDriver((580, 95, 5), True), PLENTY, None),
        ([GOOD], None, None, None),
        ([BARE], None, PLENTY, "card"),
        ([BARE, GOOD], None, PLENTY, None),  # the shim leaves the one's memory where it is
        ([GOOD], None, 100 << 20, "host memory"),
        ([NEW], KernelDriver((595, 71, 5), True), PLENTY, "driver 595.71.05"),
        ([NEW], KernelDriver((595, 71, 5), False), PLENTY, None),
        ([GOOD], KernelDriver((595, 71, 5), True), PLENTY, None),
    ],
)
def test_what_is_refused(
    gpus: list[Gpu], driver: KernelDriver | None, host_bytes: int | None, thing: str | None
) -> None:
    assert [reason.thing for reason in reasons(gpus, driver, host_bytes)] == (
        [] if thing is None else [thing]
    )


def test_a_refusal_is_one_line_with_a_documented_code(deepum: Deepum) -> None:
    ran = deepum("run", "--device", "sim", "--", "touch", "started", env=LACKING)
    assert ran.returncode == 125
    assert ran.stderr.startswith(
        "deepum: error: simulated v100-16gb: has no concurrent managed access"
    )
    assert "--force" in ran.stderr and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [("--force",), ()])
def test_forced_memory_stays_on_the_card(
    deepum: Deepum, tmp_path: Path, how: tuple[str, ...]
) -> None:
    env = LACKING if how else LACKING | {"DEEPUM_FORCE": "1"}
    ran = deepum(
        "run",
        "--device",
        "sim",
        "--stats",
        "s.json",
        *how,
        "--",
        sys.executable,
        "-c",
        ALLOCATES,
        env=env,
    )
    assert ran.returncode == 0, ran.stderr
    assert "deepum: warning: simulated v100-16gb: has no concurrent managed access" in ran.stderr
    assert _managed_bytes(tmp_path / "s.json") == 0


def test_elsewhere_the_same_program_has_unified_memory(deepum: Deepum, tmp_path: Path) -> None:
    assert (
        deepum(
            "run", "--device", "sim", "--stats", "s.json", "--", sys.executable, "-c", ALLOCATES
        ).returncode
        == 0
    )
    assert _managed_bytes(tmp_path / "s.json") == 64 << 20


def driver_cards(environment: dict[str, str]) -> tuple[Gpu, ...]:
    cards = ask_driver(environment)
    assert not isinstance(cards, str), cards
    return cards


def test_the_launcher_asks_the_driver_itself(deepum: Deepum) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEEPUM_")}
    environment = device_environment(Device("rtx4090"), clean) | {"DEEPUM_SIM_DEVICES": "2"}
    cards = driver_cards(environment)
    assert [(card.memory_bytes, card.concurrent_managed_access) for card in cards] == [
        (24 << 30, True)
    ] * 2
    assert not any(card.concurrent_managed_access for card in driver_cards(environment | LACKING))
    assert (
        ask_driver(environment | {"DEEPUM_SIM_MACHINE": "abacus"})
        == "cuInit fails with CUDA_ERROR_INVALID_VALUE (1)"
    )
    assert "libcuda.so.1" in str(ask_driver(clean))  # this machine's, which has none


def test_a_real_card_that_is_refused_ends_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepum.launcher import launch

    monkeypatch.setattr(host, "available_bytes", lambda: PLENTY)
    monkeypatch.setattr(host, "kernel_driver", lambda: None)
    monkeypatch.setattr(host, "share_bytes", lambda: None)
    with pytest.raises(DeepumError, match="concurrent managed access"):
        launch.unsafe(Device(None, (BARE,)), {}, values())
    assert "--force was given" in launch.unsafe(Device(None, (BARE,)), {}, values(force=True))[0]
    assert launch.unsafe(Device(None, (GOOD,)), {}, values()) == []


def values(**given: Value) -> dict[str, Value]:
    return {"force": False, "managed_limit": None, "host_memory": None} | given


def test_a_share_of_a_machine_needs_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepum.launcher import launch

    monkeypatch.setattr(host, "available_bytes", lambda: PLENTY)
    monkeypatch.setattr(host, "kernel_driver", lambda: None)
    monkeypatch.setattr(host, "share_bytes", lambda: 8 << 30)
    real = Device(None, (GOOD,))
    with pytest.raises(DeepumError) as refused:
        launch.unsafe(real, {}, values())
    message = str(refused.value)
    assert message.startswith(
        "machine: this process has a share of it (8.0 GiB of memory, by a control group)"
    )
    assert (
        "--managed-limit" in message
        and "DEEPUM_MANAGED_LIMIT" in message
        and "--force" in message
        and "\n" not in message
    )
    assert refused.value.exit_code == 125
    assert launch.unsafe(real, {}, values(managed_limit=0)) == []
    assert launch.unsafe(real, {}, values(managed_limit=20 << 30)) == []
    assert launch.unsafe(real, {}, values(host_memory=0)) == []
    with pytest.raises(DeepumError):
        launch.unsafe(real, {}, values(host_memory=1 << 30))
    assert "--force was given" in launch.unsafe(real, {}, values(force=True))[0]
    assert launch.unsafe(Device("v100-16gb"), {}, values()) == []


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ((), None),
        (("max", "max"), None),
        ((str(64 << 30), "max"), None),
        ((str(8 << 30), "max"), 8 << 30),
        (("max", str(4 << 30)), 4 << 30),
        ((str(8 << 30), str(4 << 30)), 4 << 30),
    ],
)
def test_what_is_a_share(tmp_path: Path, limits: tuple[str, ...], share: int | None) -> None:
    """Of a machine of 32 GiB, by the limits of a group and of the one in it."""
    groups = tmp_path / "sys/fs/cgroup/a"
    (groups / "b").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(
        f"MemTotal: {32 << 20} kB\nMemAvailable: {30 << 20} kB\n"
    )
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    for folder, limit in zip((groups, groups / "b"), limits, strict=False):
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text("5")
    assert host.share_bytes(tmp_path) == share
    warns = hosts.share("", tmp_path).level == "warn"
    assert warns == (share is not None)
    assert hosts.share("8GiB", tmp_path).level == "ok"
