"""Which device a program runs on: a real GPU, or the simulated one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import UsageError
from deepum.safety import Gpu

DEFAULT_MACHINE = "v100-16gb"
# In a process of its own: a driver that hangs or crashes must not take the launcher with it. Without cuda-python, which is an extra; the
# numbers are those of CUdevice_attribute: compute capability 75 and 76, concurrent managed access 89.
_PROBE = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
def ask(function, kind, *arguments):
    value = kind()
    assert getattr(cuda, function)(ctypes.byref(value), *arguments) == 0
    return value.value
assert cuda.cuInit(0) == 0
found = []
for index in range(ask("cuDeviceGetCount", ctypes.c_int)):
    device, name = ask("cuDeviceGet", ctypes.c_int, index), ctypes.create_string_buffer(256)
    assert cuda.cuDeviceGetName(name, 256, device) == 0
    major, minor, concurrent = (ask("cuDeviceGetAttribute", ctypes.c_int, number, device) for number in (75, 76, 89))
    found.append([name.value.decode(errors="replace"), ask("cuDeviceTotalMem_v2", ctypes.c_size_t, device), major, minor, concurrent])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Device:
    """Where the program runs. `machine` is the preset's name or the file on the simulated GPU; `gpus` are the real cards."""

    machine: str | None
    gpus: tuple[Gpu, ...] = ()
    found: bool = False  # chosen by `auto`

    @property
    def simulated(self) -> bool:
        """True on the simulated GPU."""
        return self.machine is not None

    @property
    def gpu(self) -> str | None:
        """The first real card's name."""
        return self.gpus[0].name if self.gpus else None

    @property
    def name(self) -> str:
        """As in statistics: `sim:MACHINE` or `cuda`."""
        return f"sim:{self.machine}" if self.machine is not None else "cuda"


def ask_driver(environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The cards of the driver that a program with this environment finds; none where it does not work."""
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE], env=dict(environment), capture_output=True, text=True, timeout=60, check=False
        )
        told = json.loads(probe.stdout) if probe.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return ()
    return tuple(Gpu(name, memory, (major, minor), bool(concurrent)) for name, memory, major, minor, concurrent in told)


def real_gpus() -> tuple[Gpu, ...]:
    """The real cards, none when there is none that works."""
    # WSL2 has no such nodes, but /dev/dxg.
    if not Path("/dev/nvidiactl").exists() and not Path("/dev/dxg").exists():
        return ()
    return ask_driver(os.environ)


def choose(wanted: str) -> Device:
    """The device for `auto`, `cuda`, `sim` or `sim:MACHINE`, which may be a file (deepum.machines.named). Raises UsageError."""
    if wanted == "auto":
        gpus = real_gpus()
        return Device(None, gpus, found=True) if gpus else Device(DEFAULT_MACHINE, found=True)
    if wanted == "cuda":
        gpus = real_gpus()
        if not gpus:
            raise UsageError("device cuda: no working NVIDIA GPU and driver were found; see `deepum doctor`, or use --device sim")
        return Device(None, gpus)
    kind, colon, machine = wanted.partition(":")
    if kind != "sim" or (colon and not machine):
        raise UsageError(f"device '{wanted}': is unknown; choose auto, cuda, sim or sim:MACHINE")
    if not colon:
        return Device(DEFAULT_MACHINE)
    from deepum.machines import is_file, machines, named  # after all else: it loads the native core

    if is_file(machine):
        named(machine)  # or says what is wrong with it
        return Device(os.path.abspath(machine))  # noqa: PTH100 - a link stays a link
    names = [known.name for known in machines()]
    if machine not in names:
        raise UsageError(f"machine '{machine}': is unknown; choose one of {', '.join(names)}")
    return Device(machine)
