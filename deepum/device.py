"""Which device a program runs on: a real GPU, or the simulated one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import UsageError

DEFAULT_MACHINE = "v100-16gb"
# In a process of its own: a driver that hangs or crashes must not take the launcher with it.
_PROBE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count, device, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0 and cuda.cuDeviceGetName(name, 256, device) == 0
print(name.value.decode())
"""


@dataclass(frozen=True)
class Device:
    """Where the program runs. `machine` is the preset's name on the simulated GPU; `gpu` the card's name on a real one."""

    machine: str | None
    gpu: str | None = None
    found: bool = False  # chosen by `auto`

    @property
    def simulated(self) -> bool:
        """True on the simulated GPU."""
        return self.machine is not None

    @property
    def name(self) -> str:
        """As in statistics: `sim:MACHINE` or `cuda`."""
        return f"sim:{self.machine}" if self.machine is not None else "cuda"


def real_gpu() -> str | None:
    """The name of the first real GPU, None when there is none that works."""
    if not Path("/dev/nvidiactl").exists():
        return None
    try:
        probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return probe.stdout.strip() or None if probe.returncode == 0 else None


def choose(wanted: str) -> Device:
    """The device for `auto`, `cuda`, `sim` or `sim:MACHINE`. Raises UsageError."""
    if wanted == "auto":
        gpu = real_gpu()
        return Device(None, gpu, found=True) if gpu else Device(DEFAULT_MACHINE, found=True)
    if wanted == "cuda":
        gpu = real_gpu()
        if gpu is None:
            raise UsageError("device cuda: no working NVIDIA GPU and driver were found; use --device sim for the simulated one")
        return Device(None, gpu)
    kind, colon, machine = wanted.partition(":")
    if kind != "sim" or (colon and not machine):
        raise UsageError(f"device '{wanted}': is unknown; choose auto, cuda, sim or sim:MACHINE")
    if not colon:
        return Device(DEFAULT_MACHINE)
    from deepum.machines import machines  # after all else: it loads the native core

    names = [known.name for known in machines()]
    if machine not in names:
        raise UsageError(f"machine '{machine}': is unknown; choose one of {', '.join(names)}")
    return Device(machine)
