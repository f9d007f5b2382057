"""Each check by itself, on answers and trees made for it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepum import host
from deepum.device import Device
from deepum.doctor import containers, gpus, hosts, installation, pytorch, uvm_tools
from deepum.doctor.ask import Answer, ask
from deepum.host import KernelDriver
from deepum.launcher.environment import device_environment

GIB = 1 << 30
ROOT = Path(__file__).resolve().parents[2]


def put(root: Path, path: str, text: str) -> None:
    """A file of the tree."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


# ---- the driver


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("cuMemPrefetchBatchAsync", gpus.moves),
        ("cuMemDiscardBatchAsync", gpus.discard),
        ("cuFuncGetParamInfo", gpus.parameters),
    ],
)
def test_a_function_that_the_driver_lacks_is_a_warning(
    known: dict[str, Any], name: str, check: Callable[[Answer], Any]
) -> None:
    assert check(Answer(known)).level == "ok"
    known["calls"][name] = False
    warned = check(Answer(known))
    assert warned.level == "warn" and "driver" in warned.remedy


def test_a_driver_without_prefetch_fails(known: dict[str, Any]) -> None:
    known["calls"]["cuMemPrefetchAsync"] = False
    assert gpus.moves(Answer(known)).level == "fail"


def test_an_old_card_fails(known: dict[str, Any]) -> None:
    known["devices"][0]["capability"] = [5, 2]
    assert gpus.gpu(Answer(known)).level == "fail"


def test_an_old_driver_is_a_warning(known: dict[str, Any]) -> None:
    known["cuda_version"] = 12020
    assert gpus.driver(Answer(known), KernelDriver((535, 54, 3), False)).level == "warn"


def test_a_driver_known_to_hang_fails_on_the_cards_concerned(known: dict[str, Any]) -> None:
    open_595 = KernelDriver((595, 71, 5), True)
    assert gpus.driver(Answer(known), open_595).level == "ok"
    known["devices"][0]["capability"] = [12, 0]
    assert gpus.driver(Answer(known), open_595).level == "fail"
    assert gpus.driver(Answer(known), KernelDriver((595, 71, 5), False)).level == "ok"
    assert gpus.driver(Answer(known), KernelDriver((580, 95, 5), True)).level == "ok"


def test_slow_prefetches_are_a_warning(known: dict[str, Any]) -> None:
    link = known["link"]
    assert gpus.link(Answer(known)).level == "ok"
    link["to_host_prefetch"] = link["to_host_pinned"] / 2
    check = gpus.link(Answer(known))
    assert check.level == "warn" and check.remedy.startswith("none: the driver maps each page")
    link["to_gpu_prefetch"] = link["to_gpu_pinned"] / 2
    check = gpus.link(Answer(known))
    assert check.level == "warn" and "NUMA" in check.remedy


def test_a_fault_source_is_cupti_else_uvm_tools_else_a_warning(known: dict[str, Any]) -> None:
    assert known["uvm_tools"] == {"release": "580.65.06", "layout": 2, "error": None}
    both = gpus.faults(Answer(known))
    assert (
        both.level == "ok"
        and both.found.startswith("CUPTI")
        and both.found.endswith("uvm-tools too")
    )
    refusing = known["cupti"] | {"error": "the driver lets only the superuser profile"}
    for cupti, why in ((None, "no libcupti.so.13"), (refusing, "superuser")):
        known["cupti"] = cupti
        replaced = gpus.faults(Answer(known))
        assert (
            replaced.level == "ok"
            and replaced.found.startswith("uvm-tools of driver 580.65.06")
            and why in replaced.found
        )
        neither = gpus.faults(
            Answer(
                known
                | {
                    "uvm_tools": known["uvm_tools"]
                    | {"error": "/dev/nvidia-uvm-tools: Permission denied"}
                }
            )
        )
        assert (
            neither.level == "warn"
            and why in neither.found
            and "Permission denied" in neither.found
            and neither.remedy
        )


@pytest.mark.parametrize(
    ("driver", "layout", "error"),
    [
        ("550.40.07", 1, None),
        ("550.163.01", 1, None),
        ("580.65.06", 2, None),
        ("595.71.05", None, "the events' layout is not known for driver 595.71.05"),
        ("no-driver", None, "no kernel module of NVIDIA's is loaded"),
        ("absent", None, "/dev/nvidia-uvm-tools: No such file or directory"),
        ("forbidden", None, "/dev/nvidia-uvm-tools: Permission denied"),
        ("refusing", None, "its queue was refused with NV_STATUS 0x1b"),
        ("mute", 2, "its events were refused: EIO"),
    ],
)
def test_uvm_tools_is_tried_as_the_shim_would(
    driver: str, layout: int | None, error: str | None
) -> None:
    text = (
        "from deepum.doctor import uvm_tools; from deepum.doctor.driver import Cuda; Cuda(0); "
        "print(uvm_tools.examine())"
    )
    made = device_environment(Device("v100-16gb"), os.environ | {"DEEPUM_SIM_UVM_TOOLS": driver})
    ran = subprocess.run(
        [sys.executable, "-c", text],
        env=made,
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )
    report = ast.literal_eval(ran.stdout)
    assert (report["layout"], report["error"]) == (layout, error)


def test_uvm_tools_has_the_numbers_that_the_shim_has() -> None:
    header = (ROOT / "native" / "uvm_tools_abi" / "uvm_tools_abi.h").read_text()
    layouts = (ROOT / "kernel_hooks" / "uvm_tools_layout.hpp").read_text()
    number = {name: int(value, 0) for name, value in re.findall(r"DEEPUM_(\w+) = (\w+)", header)}
    assert {layout.request for layout in uvm_tools.LAYOUTS.values()} == {
        number["UVM_TOOLS_INIT_EVENT_TRACKER"],
        number["UVM_TOOLS_INIT_EVENT_TRACKER_V2"],
    }
    assert {int(branch) for branch in re.findall(r"case (\d+):", layouts)} == set(uvm_tools.LAYOUTS)
    sizes = {f"v{layout.version}": layout.record_bytes for layout in uvm_tools.LAYOUTS.values()}
    assert {
        name: int(size)
        for name, size in re.findall(r"sizeof\(deepum_uvm_fault_(v\d)\) == (\d+)", header)
    } == sizes


@pytest.fixture
def driver_that(
    compile_program: Callable[..., Path], tmp_path: Path
) -> Callable[[str], dict[str, str]]:
    """The environment with a libcuda.so.1 that makes this call when it is loaded."""

    def make(call: str) -> dict[str, str]:
        source, folder = tmp_path / "driver.c", tmp_path / "driver"
        source.write_text(
            f"#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static "
            f"void load(void) {{ {call}; }}\n"
        )
        folder.mkdir()
        compile_program(source, shared=True).rename(folder / "libcuda.so.1")
        return os.environ | {"LD_LIBRARY_PATH": str(folder)}

    return make


def test_a_driver_that_hangs_is_found_and_not_waited_for(
    driver_that: Callable[[str], dict[str, str]],
) -> None:
    answer = ask(driver_that("pause()"), False, seconds=3)
    assert answer.hung
    check = gpus.gpu(answer)
    assert check.level == "fail" and "did not answer within 3 s" in check.found


def test_a_driver_that_crashes_is_found(driver_that: Callable[[str], dict[str, str]]) -> None:
    answer = ask(driver_that("abort()"), False)
    assert answer.trouble is not None and "-6" in answer.trouble
    assert gpus.gpu(answer).level == "fail"


# ---- the host


MEMINFO = "MemTotal:       67108864 kB\nMemFree:  1 kB\nMemAvailable:   33554432 kB\n"


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 32 * GIB),
        (
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": "max\n",
                "sys/fs/cgroup/memory.current": "5\n",
            },
            32 * GIB,
        ),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/memory.max": f"{8 * GIB}\n",
                "sys/fs/cgroup/a/memory.current": f"{6 * GIB}\n",
                "sys/fs/cgroup/a/memory.stat": f"anon 7\ninactive_file {GIB}\n",
                "sys/fs/cgroup/a/b/memory.max": f"{20 * GIB}\n",
                "sys/fs/cgroup/a/b/memory.current": f"{GIB}\n",
            },
            3 * GIB,
        ),
        (
            {
                "proc/self/cgroup": "9:cpu:/x\n5:memory:/x\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory/x/memory.usage_in_bytes": f"{3 * GIB}\n",
            },
            0,
        ),
    ],
    ids=["machine", "unlimited", "group-above", "version-1"],
)
def test_available_memory_is_what_machine_and_groups_leave(
    tmp_path: Path, files: dict[str, str], available: int
) -> None:
    for path, text in {"proc/meminfo": MEMINFO, **files}.items():
        put(tmp_path, path, text)
    assert host.available_bytes(tmp_path) == available


@pytest.mark.parametrize(
    ("kilobytes", "gpu", "level"),
    [
        (40 << 20, 16 * GIB, "ok"),
        (8 << 20, 16 * GIB, "warn"),
        (1 << 19, 16 * GIB, "fail"),
        (8 << 20, None, "ok"),
    ],
)
def test_host_memory_by_what_has_to_fit(
    tmp_path: Path, kilobytes: int, gpu: int | None, level: str
) -> None:
    put(tmp_path, "proc/meminfo", f"MemAvailable: {kilobytes} kB\n")
    assert hosts.memory(gpu, tmp_path).level == level


@pytest.mark.parametrize(
    ("mode", "level"), [("0\n", "ok"), ("1\n", "ok"), ("2\n", "warn"), (None, "ok")]
)
def test_strict_overcommit_is_a_warning(tmp_path: Path, mode: str | None, level: str) -> None:
    if mode is not None:
        put(tmp_path, "proc/sys/vm/overcommit_memory", mode)
    assert hosts.overcommit(tmp_path).level == level


def test_limited_address_space_fails() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40));"
        "from deepum.doctor.hosts import limits; print(limits().level)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "fail\n"


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        (
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 "
                "UTC 2024\nGCC version:\n"
            ),
            "550.54.14",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build\n",
            "595.71.05",
        ),
        ("", None),
    ],
)
def test_the_kernel_module_tells_its_version(tmp_path: Path, text: str, driver: str | None) -> None:
    put(tmp_path, "proc/driver/nvidia/version", text)
    found = host.kernel_driver(tmp_path)
    assert (found.text if found is not None else None) == driver
    assert found is None or found.open == ("Open" in text)


# ---- containers


def test_device_nodes(tmp_path: Path) -> None:
    assert "modprobe" in containers.devices(tmp_path).remedy
    put(tmp_path, ".dockerenv", "")
    assert "--gpus all" in containers.devices(tmp_path).remedy
    put(tmp_path, "dev/nvidiactl", "")
    without = containers.devices(tmp_path)
    assert without.level == "fail" and "nvidia-uvm" in without.found
    put(tmp_path, "dev/nvidia-uvm", "")
    assert containers.devices(tmp_path).level == "ok"


def test_wsl_has_other_nodes(tmp_path: Path) -> None:
    put(tmp_path, "dev/dxg", "")
    assert containers.devices(tmp_path).level == "warn"


@pytest.mark.parametrize(
    ("capabilities", "level"),
    [("compute,utility", "ok"), ("all", "ok"), ("utility", "fail"), (None, None)],
)
def test_driver_libraries(capabilities: str | None, level: str | None) -> None:
    check = containers.capabilities(
        {} if capabilities is None else {"NVIDIA_DRIVER_CAPABILITIES": capabilities}
    )
    assert (check.level if check is not None else None) == level


# ---- PyTorch and ourselves


@pytest.mark.parametrize(
    ("version", "cuda", "level", "says"),
    [
        ("2.12.1+cu130", "'13.0'", "ok", "2.12.1+cu130, CUDA 13.0"),
        ("2.4.1+cu121", "'12.1'", "ok", "2.4.1+cu121, CUDA 12.1"),
        ("2.4.1+cu118", "'11.8'", "warn", "CUDA 11.8 is not tested"),
        ("2.3.1", "'12.1'", "warn", "older than what is tested"),
        ("3.0.0", "'14.0'", "warn", "CUDA 14.0 is not tested"),
        ("2.99.0", "'13.4'", "ok", "newer than what is tested, 2.4 to 2."),
        ("2.12.1+cpu", "None", "warn", "built without CUDA"),
    ],
)
def test_pytorch_versions(tmp_path: Path, version: str, cuda: str, level: str, says: str) -> None:
    put(tmp_path, "version.py", f"__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n")
    check = pytorch.version(tmp_path)
    assert check.level == level
    assert says in check.found
    assert ("newer" in check.found) == ("newer" in says)


def test_a_runtime_folder_that_is_too_long_fails(tmp_path: Path) -> None:
    assert (
        installation.runtime_folder({"DEEPUM_RUNTIME_DIR": str(tmp_path / ("x" * 100))}).level
        == "fail"
    )
    assert (
        installation.runtime_folder({"DEEPUM_RUNTIME_DIR": "/tmp/deepum-not-there"}).level == "ok"
    )
    put(tmp_path, "file", "")
    assert (
        installation.runtime_folder({"DEEPUM_RUNTIME_DIR": str(tmp_path / "file")}).level == "fail"
    )
