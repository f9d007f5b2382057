"""The requests and the ring as the shim uses them on a kernel module, which a program of its own
plays (no GPU tells of mistakes here).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deepum import host

ROOT = Path(__file__).resolve().parents[2]
HOOKS = ROOT / "kernel_hooks"


@pytest.fixture(scope="session")
def module(
    tmp_path_factory: pytest.TempPathFactory, cuda_include: Path, sanitizer_flags: tuple[str, ...]
) -> Callable[..., list[str]]:
    """What the program says: module("580.65.06", "absent")."""
    program = tmp_path_factory.mktemp("module") / "uvm_tools_module"
    sources = [
        ROOT / "tests" / "programs" / "uvm_tools_module.cpp",
        HOOKS / "uvm_tools_device.cpp",
        HOOKS / "uvm_tools_queue.cpp",
    ]
    folders = (
        HOOKS,
        ROOT / "native" / "uvm_tools_abi",
        ROOT / "native" / "runtime",
        ROOT / "native" / "wire",
        cuda_include,
    )
    wrapped = [f"-Wl,--wrap={name}" for name in ("open", "stat", "fstat", "ioctl")]
    defined = ["-D__CUDA_API_VERSION_INTERNAL", "-D__CUDA_API_VERSION_INTERNAL_ODR"]
    command = [
        "g++",
        "-std=gnu++20",
        "-O1",
        "-g",
        "-Wall",
        *defined,
        *wrapped,
        *sanitizer_flags,
        "-o",
        program,
    ]
    subprocess.run(
        [
            *map(str, [*command, *(f"-I{folder}" for folder in folders), *sources]),
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )

    def run(release: str, mode: str = "") -> list[str]:
        environment = os.environ | {"MODULE_RELEASE": release, "MODULE_MODE": mode}
        return subprocess.run(
            [program], env=environment, text=True, capture_output=True, check=True, timeout=60
        ).stdout.splitlines()

    return run


@pytest.mark.parametrize(
    "release", ["550.163.01", "555.42.02", "565.57.01", "570.133.07", "575.51.02", "580.65.06"]
)
def test_a_queue_tells_what_the_module_writes(
    module: Callable[..., list[str]], release: str
) -> None:
    room = (1 << 16) - 1
    assert module(release) == [
        "uuids 1 7 0",
        f"sound {room} faults, last 0x{room << 12:x} by 1, access 2, {100_000 - room} dropped",
        f"sound 2 faults, last 0x7f0000002000 by 3, access 4, {100_000 - room} dropped",
        f"sound 0 faults, last 0x0 by 0, access 0, {100_000 - room} dropped",
        *[f"strange 0 faults, last 0x0 by 0, access 0, {100_000 - room} dropped"] * 2,
        "closed 1",
    ]


@pytest.mark.parametrize("release", ["550.163.01", "580.65.06"])
def test_what_is_written_meanwhile_is_told_once_or_counted(
    module: Callable[..., list[str]], release: str
) -> None:
    assert module(release, "racing") == ["uuids 1 7 0", "sound, all accounted for"]


@pytest.mark.parametrize(
    ("release", "mode", "why"),
    [
        (
            "590.44.01",
            "",
            (
                "the events' layout is not known for driver 590.44.01, but for 550, 555, 565, "
                "570, 575 and 580"
            ),
        ),
        (
            "560.28.03",
            "",
            (
                "the events' layout is not known for driver 560.28.03, but for 550, 555, 565, "
                "570, 575 and 580"
            ),
        ),
        ("nothing", "", "no kernel module of NVIDIA's is loaded"),
        ("580.65.06", "absent", "/dev/nvidia-uvm-tools: No such file or directory"),
        ("580.65.06", "forbidden", "/dev/nvidia-uvm-tools: Permission denied"),
        ("580.65.06", "refusing", "its queue was refused with NV_STATUS 0x1b"),
        ("550.163.01", "other-layout", "events of layout 2 were granted, not of 1"),
        ("580.65.06", "no-libcuda", "this process has not opened /dev/nvidia-uvm"),
    ],
)
def test_where_there_is_none_it_says_why(
    module: Callable[..., list[str]], release: str, mode: str, why: str
) -> None:
    assert module(release, mode) == [f"refused: {why}"]


def test_a_descriptor_that_has_become_another_files_is_left_alone(
    module: Callable[..., list[str]],
) -> None:
    assert module("580.65.06", "closed") == ["uuids 1 7 0", "not enabled: 9", "closed 0"], (
        "nor does a forked child close it"
    )


@pytest.mark.skipif(host.kernel_driver() is not None, reason="there is a kernel module")
def test_nothing_is_found_on_a_machine_without_one() -> None:
    from deepum.doctor import uvm_tools

    assert uvm_tools.Module().release() is None and uvm_tools.Module().uvm_descriptors() == []
    with pytest.raises(FileNotFoundError):
        uvm_tools.Module().open()
