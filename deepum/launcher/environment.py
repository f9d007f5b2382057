"""The environment of a program: what has it find the device's driver, the shim and its settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from deepum import paths
from deepum.configuration.setting import Value
from deepum.configuration.settings import SETTINGS
from deepum.configuration.variables import INTERNAL_VARIABLES
from deepum.device import Device

OPERATORS = "operators"  # of the setting `writes`
# Addresses only: the simulated GPU keeps no data unless a host module is loaded.
_SIMULATED_HOST_MEMORY = 256 << 30
# What PyTorch must not be told: neither goes through cudaMalloc (facts: expandable_segments is VMM,
# cudaMallocAsync a pool).
_ALLOCATOR_SETTINGS = (
    (r"expandable_segments\s*:\s*True", "expandable_segments:False"),
    (r"backend\s*:\s*cudaMallocAsync", "backend:native"),
)


def _without_ours(variable: str) -> list[str]:
    """The entries of a path list that a launcher around us did not add."""
    return [
        entry
        for entry in variable.split(":")
        if entry and not Path(entry).is_relative_to(paths.PACKAGE)
    ]


def child_environment(
    values: Mapping[str, Value], device: Device, environment: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The program's environment, and what has to be said about it."""
    made = device_environment(device, environment)
    for setting in SETTINGS:
        # The simulated driver's, which device_environment has set.
        if setting.name != "sim_devices":
            made.pop(setting.variable, None)
        if values[setting.name] != setting.default and setting.readers != ("launcher",):
            made[setting.variable] = setting.text(values[setting.name])
    if values["remat"] is not None or values["writes"] == OPERATORS:
        made["PYTHONPATH"] = ":".join(
            [str(paths.STARTUP), *_without_ours(made.get("PYTHONPATH", ""))]
        )
    if device.is_cpu:
        made["DEEPUM_REMAT_DEVICE"] = "cpu"
        return made, []
    made["DEEPUM_DAEMON"] = sys.executable
    preloads = [str(paths.shim())]
    if device.simulated:
        preloads += [str(library) for library in paths.simulator_preloads()]
        made.setdefault("DEEPUM_SYNC", "1")  # the same each time
        if values["gpu_memory"] is not None and environment.get("DEEPUM_SIM_SOFT_BUDGET", "0") in (
            "",
            "0",
        ):
            made["DEEPUM_SIM_MEMORY"] = made.pop("DEEPUM_GPU_MEMORY")
        made.setdefault("DEEPUM_GPU_RESERVE", "0")  # the simulated driver takes nothing of its card
        made.setdefault("DEEPUM_HOST_MEMORY", str(_SIMULATED_HOST_MEMORY))
        made["DEEPUM_HOST_MEMORY_VIRTUAL"] = "1"
        if values["sim_devices"] is not None:
            made["DEEPUM_SIM_DEVICES"] = str(values["sim_devices"])
        if values["record"] is not None:
            made["DEEPUM_SIM_RECORD"] = str(values["record"])
    made["LD_PRELOAD"] = ":".join([*preloads, made.pop("LD_PRELOAD", "")]).rstrip(":")
    return made, allocator_remarks(made)


def device_environment(device: Device, environment: Mapping[str, str]) -> dict[str, str]:
    """What a program needs in its environment to find the device's driver, and nothing else of
    ours.
    """
    made = {name: value for name, value in environment.items() if name not in INTERNAL_VARIABLES}
    libraries = _without_ours(environment.get("LD_LIBRARY_PATH", ""))
    if device.simulated:
        libraries.insert(0, str(paths.SIMULATOR))
        made |= _machine(str(device.machine))
        made["DEEPUM_SIM_DEVICES"] = environment.get("DEEPUM_SIM_DEVICES") or "1"
    for name, entries in (
        ("LD_LIBRARY_PATH", libraries),
        ("LD_PRELOAD", _without_ours(environment.get("LD_PRELOAD", "").replace(" ", ":"))),
    ):
        made.pop(name, None)
        if entries:
            made[name] = ":".join(entries)
    return made


def _machine(name: str) -> dict[str, str]:
    """What tells the simulated driver of the machine."""
    from deepum.machines import is_file, named  # only here: it loads the native core

    if not is_file(name):
        return {"DEEPUM_SIM_MACHINE": name}
    machine = named(name)
    return {"DEEPUM_SIM_MACHINE": machine.preset, "DEEPUM_SIM_FIGURES": machine.text}


def allocator_remarks(environment: dict[str, str]) -> list[str]:
    """Turns PyTorch's allocators that bypass cudaMalloc off, in this environment, and says so."""
    remarks = []
    for variable in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        for pattern, replacement in _ALLOCATOR_SETTINGS:
            if re.search(pattern, environment.get(variable, "")):
                environment[variable] = re.sub(pattern, replacement, environment[variable])
                remarks.append(
                    f"{variable}: {replacement}, since that allocator bypasses cudaMalloc"
                )
    return remarks
