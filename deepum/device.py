"""Which device a program runs on: a real GPU, or the simulated one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import DeepumError, UsageError
from deepum.safety import Gpu

DEFAULT_MACHINE = "v100-16gb"
# In a process of its own: a driver that hangs or crashes must not take the launcher with it.
# Without cuda-python, which is an extra; the numbers are those of CUdevice_attribute: compute
# capability 75 and 76, concurrent managed access 89.
_PROBE = """
import ctypes, json, sys
def end(answer):
    print(json.dumps(answer))
    sys.exit()
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    end(str(error))
def call(function, *arguments):
    result = getattr(cuda, function)(*arguments)
    if result != 0:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(name))
        end(f"{function} fails with {(name.value or b'an unknown error').decode()} ({result})")
def ask(function, kind, *arguments):
    value = kind()
    call(function, ctypes.byref(value), *arguments)
    return value.value
call("cuInit", 0)
found = []
for index in range(ask("cuDeviceGetCount", ctypes.c_int)):
    device, name = ask("cuDeviceGet", ctypes.c_int, index), ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, device)
    attributes = [ask("cuDeviceGetAttribute", ctypes.c_int, each, device) for each in (75, 76, 89)]
    memory = ask("cuDeviceTotalMem_v2", ctypes.c_size_t, device)
    found.append([name.value.decode(errors="replace"), memory, *attributes])
end(found or "the driver shows no GPU")
"""
_PROBE_SECONDS = 60


@dataclass(frozen=True)
class Device:
    """Where the program runs. `machine` is the preset's name or the file on the simulated GPU;
    `gpus` are the real cards; is_cpu: on none.
    """

    machine: str | None
    gpus: tuple[Gpu, ...] = ()
    is_cpu: bool = False

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
        """As in statistics: `sim:MACHINE`, `cuda` or `cpu`."""
        if self.is_cpu:
            return "cpu"
        return f"sim:{self.machine}" if self.machine is not None else "cuda"


def ask_driver(environment: Mapping[str, str]) -> tuple[Gpu, ...] | str:
    """The cards of the driver that a program with this environment finds; where there is none that
    works, why.
    """
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
        answer = (
            json.loads(probe.stdout)
            if probe.returncode == 0
            else f"the driver ends the process that asks it ({probe.returncode})"
        )
    except subprocess.TimeoutExpired:
        return f"the driver does not answer within {_PROBE_SECONDS} s"
    except (OSError, ValueError) as error:
        return f"the driver cannot be asked: {error}"
    if isinstance(answer, str):
        return answer
    return tuple(
        Gpu(name, memory, (major, minor), bool(concurrent))
        for name, memory, major, minor, concurrent in answer
    )


def real_gpus() -> tuple[Gpu, ...] | str:
    """The real cards; where there is none that works, why."""
    # WSL2 has no such nodes, but /dev/dxg.
    if not Path("/dev/nvidiactl").exists() and not Path("/dev/dxg").exists():
        return "no NVIDIA driver is loaded (there is no /dev/nvidiactl)"
    return ask_driver(os.environ)


def choose(wanted: str) -> Device:
    """The device for `auto`, `cuda`, `cpu`, `sim` or `sim:MACHINE`, which may be a file
    (deepum.machines.named).

    A simulated GPU is never chosen unasked: a program would seem to work there, and compute
    nothing. Raises DeepumError where no GPU works, UsageError for what is not a device.
    """
    if wanted in ("auto", "cuda"):
        gpus = real_gpus()
        if isinstance(gpus, str):
            raise DeepumError(
                f"device {wanted}: no working GPU: {gpus}; see `deepum doctor`, or try a "
                f"simulated GPU with --device sim"
            )
        return Device(None, gpus)
    if wanted == "cpu":
        return Device(None, is_cpu=True)
    kind, colon, machine = wanted.partition(":")
    if kind != "sim" or (colon and not machine):
        raise UsageError(
            f"device '{wanted}': is unknown; choose auto, cuda, cpu, sim or sim:MACHINE"
        )
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
